"""What the paper printed in 2012, as data: Figures 3, 6 and 7, and what §6 says of strategies and scale factors.

Figures 5 and 8 to 11 are pictures: of what they show, only what the text says of them is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple


class Rules(NamedTuple):
    """Figure 3. (1) and (2): applied or not. (3): S(ubquery) or C(ache). (4): R(e-evaluated), I(ncremental)."""

    one: str
    two: str
    three: str
    four: str


FIGURE_3 = MappingProxyType(
    {
        "axf": Rules("-", "✓", "S", "-"),
        "bsp": Rules("-", "✓", "-", "-"),
        "bsv": Rules("-", "✓", "-", "-"),
        "mst": Rules("-", "✓", "S", "R,I"),
        "psp": Rules("-", "✓", "S", "R,I"),
        "vwap": Rules("-", "✓", "C", "R"),
        "q3": Rules("✓", "✓", "-", "-"),
        "q11": Rules("-", "-", "-", "-"),
        "q17": Rules("✓", "✓", "S", "I"),
        "q18": Rules("✓", "✓", "S", "I"),
        "q22": Rules("✓", "✓", "S", "R,I"),
        "ssb4": Rules("✓", "-", "-", "-"),
    }
)


class Features(NamedTuple):
    """Figure 6."""

    tables: str
    where: str
    groups: str
    subqueries: str


FIGURE_6 = MappingProxyType(
    {
        "axf": Features("2, =", "∨, <", "yes", "0 / 0"),
        "bsp": Features("2, =", "∧, <", "yes", "0 / 0"),
        "bsv": Features("2, =", "none", "no", "0 / 0"),
        "mst": Features("2, ×", "∧, <", "yes", "2 / 1"),
        "psp": Features("2, ×", "∧, <", "no", "2 / 1"),
        "vwap": Features("1", "<", "no", "2 / 1"),
        "q3": Features("3, =", "∧, <", "yes", "0 / 0"),
        "q11": Features("2, =", "none", "yes", "0 / 0"),
        "q17": Features("2, =", "<", "no", "1 / 1"),
        "q18": Features("3, =", "<", "yes", "1 / 2"),
        "q22": Features("1", "=, <", "yes", "2 / 1"),
        "ssb4": Features("7, =", "<", "yes", "0 / 0"),
    }
)


class Rates(NamedTuple):
    """Figure 7: refreshes per second; None where DBX could not maintain the view."""

    depth_0: float
    dbx: float
    dbx_ivm: float | None
    spy: float
    dbtoaster: float


FIGURE_7 = MappingProxyType(
    {
        "q3": Rates(15.00, 41.12, 4.01, 59.69, 22049.06),
        "q11": Rates(20.67, 19.91, 8.31, 13.11, 41842.62),
        "q17": Rates(17.15, 10.72, None, 32.58, 21256.16),
        "q18": Rates(17.93, 41.35, None, 21.13, 24056.02),
        "q22": Rates(2.22, 35.65, None, 39.82, 8761.95),
        "ssb4": Rates(16.49, 42.67, 6.30, 69.19, 2970.64),
        "bsv": Rates(2.18, 32.60, 26.32, 22.94, 103290.67),
        "bsp": Rates(5.19, 31.47, 16.65, 13.79, 21114.23),
        "axf": Rates(6.57, 31.10, 11.56, 12.28, 22126.26),
        "psp": Rates(6.68, 13.32, None, 10.52, 18895.52),
        "mst": Rates(6.54, 30.88, None, 7.51, 19.90),
        "vwap": Rates(7.40, 12.89, None, 9.31, 3259.47),
    }
)

CURVES = MappingProxyType(
    {
        "figure-8": ("q3", "q11", "q17", "q18"),
        "figure-9": ("q22", "ssb4", "vwap", "bsv"),
        "figure-10": ("psp", "mst", "axf", "bsp"),
    }
)

Shape = Literal["as fast", "faster", "far faster", "printed"]


@dataclass(frozen=True, slots=True)
class Claim:
    """``first`` is (as fast as | faster than | far faster than) ``second``; or so many ``times``, as printed."""

    query: str
    first: str
    second: str
    shape: Shape
    said: str
    times: float | None = None


MOSTLY_IDENTICAL = '§6.1, equijoins: "DBToaster and Naive Recursive Compilation produce mostly identical results"'
NEARLY_OPTIMAL = '§6.1, inequijoins: "IVM is nearly optimal – DBToaster achieves a small speed boost"'
PARTIAL_WINS = '§6.1, inequijoins: "partial materialization outperforms naive"'
DECORRELATES = '§6.1: "strong performance comes from decorrelating the nested subquery for only the deltas of Lineitem"'

CLAIMS = (
    *(
        Claim(
            query,
            "naive" if query == "vwap" else "optimized",  # which is what DBToaster ran there
            "reevaluate",
            "printed",
            "Figure 7, DBToaster by Depth 0",
            rates.dbtoaster / rates.depth_0,
        )
        for query, rates in FIGURE_7.items()
    ),
    *(Claim(query, "optimized", "naive", "as fast", MOSTLY_IDENTICAL) for query in ("q3", "q11", "ssb4", "bsv")),
    Claim("q11", "optimized", "classical", "as fast", '§6.1: "IVM is able to perform as effectively as DBToaster"'),
    Claim("bsv", "optimized", "classical", "far faster", '§6.1: "a substantial performance improvement"'),
    *(Claim(query, "optimized", "classical", "faster", DECORRELATES) for query in ("q17", "q18")),
    *(Claim(query, "optimized", "classical", "as fast", NEARLY_OPTIMAL) for query in ("axf", "bsp")),
    *(Claim(query, "optimized", "naive", "faster", PARTIAL_WINS) for query in ("axf", "bsp")),
    Claim("vwap", "naive", "optimized", "faster", '§6.1: "an ideal candidate for view caching"'),
    Claim("vwap", "cost", "naive", "as fast", 'Figure 9c: "DBToaster chooses the naive recursive approach"'),
)

CONSTANT_WITH_SCALE = '§6.2: "With the exception of Q22, performance stays roughly constant as stream length grows."'
