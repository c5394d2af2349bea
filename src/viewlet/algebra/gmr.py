"""Generalised multiset relations (§3.1, Figure 1): tuples ↦ rational multiplicities, all but finitely many of them 0.

A tuple is a record: the order of the columns is only how it is written down. ⋈ matches equal values, NULL with NULL
included; for SQL's ``=``, rule the NULLs out first (the guard invariant of :mod:`viewlet.algebra.query`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

from viewlet.algebra.terms import Const, Number, Op, Scalar, Term, Var, evaluate_term, exact, show_constant, show_number

Tuple = tuple[Scalar, ...]
NamedRow = Mapping[str, Scalar]
Function = Term | Callable[[NamedRow], Scalar]


@dataclass(frozen=True, eq=False, repr=False)
class GMR:
    """``GMR(("A", "B"), {("a", 1): 2})``; a tuple that is not among the entries has multiplicity 0."""

    columns: tuple[str, ...]
    entries: Mapping[Tuple, Number] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(set(self.columns)) != len(self.columns):
            raise ValueError(f"a column is named twice: {', '.join(self.columns)}")
        kept: dict[Tuple, Number] = {}
        for row, multiplicity in self.entries.items():
            if not isinstance(row, tuple) or len(row) != len(self.columns):
                raise ValueError(f"{row!r} is not a tuple of the {len(self.columns)} columns {self.columns}")
            for value in row:
                _refuse_inexact(value)
            if _number(multiplicity) != 0:
                kept[row] = exact(multiplicity)
        object.__setattr__(self, "entries", MappingProxyType(kept))

    @classmethod
    def singleton(cls, row: NamedRow, multiplicity: Number = 1) -> GMR:
        """{⟨A⃗: a⃗⟩ ↦ c}; ``singleton({}, c)`` is the nullary {⟨⟩ ↦ c}."""
        return cls(tuple(row), {tuple(row.values()): multiplicity})

    # -- reading -------------------------------------------------------------------------------------------------------

    def __getitem__(self, row: Tuple) -> Number:
        """R(t⃗)"""
        return self.entries.get(row, 0)

    def __iter__(self) -> Iterator[Tuple]:
        return iter(self.entries)

    def __len__(self) -> int:
        """The size of the support, not the sum of the multiplicities."""
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GMR) or set(self.columns) != set(other.columns):
            return NotImplemented if not isinstance(other, GMR) else False
        return self.entries == other.over(self.columns).entries

    def __hash__(self) -> int:
        columns = tuple(sorted(self.columns))
        return hash((columns, frozenset(self.over(columns).entries.items())))

    def rows(self) -> Iterator[tuple[NamedRow, Number]]:
        """Every tuple of the support as a record, with its multiplicity."""
        for row, multiplicity in self.entries.items():
            yield dict(zip(self.columns, row, strict=True)), multiplicity

    def over(self, columns: Iterable[str]) -> GMR:
        """The same relation with its columns written in another order."""
        columns = tuple(columns)
        if columns == self.columns:
            return self
        if sorted(columns) != sorted(self.columns):
            raise ValueError(f"columns {columns} are not those of {self.columns} in another order")
        return _collect(columns, self.rows())

    # -- the operations of §3.1 ----------------------------------------------------------------------------------------

    def __add__(self, other: GMR) -> GMR:
        """R + S : t⃗ ↦ R(t⃗) + S(t⃗)"""
        total = dict(self.entries)
        for row, multiplicity in other.over(self.columns).entries.items():
            total[row] = total.get(row, 0) + multiplicity
        return GMR(self.columns, total)

    def __neg__(self) -> GMR:
        """R ⋈ {⟨⟩ ↦ −1}"""
        return self * GMR.singleton({}, -1)

    def __sub__(self, other: GMR) -> GMR:
        """R − S := R + (S ⋈ {⟨⟩ ↦ −1})"""
        return self + -other

    def join(self, other: GMR) -> GMR:
        """R ⋈ S : t⃗ ↦ R(π_sch(R) t⃗) * S(π_sch(S) t⃗)"""
        shared = [c for c in self.columns if c in other.columns]
        matches: dict[Tuple, list[tuple[NamedRow, Number]]] = {}
        for row, multiplicity in other.rows():
            matches.setdefault(tuple(row[c] for c in shared), []).append((row, multiplicity))
        columns = self.columns + tuple(c for c in other.columns if c not in self.columns)
        return _collect(
            columns,
            (
                ({**left, **right}, m * n)
                for left, m in self.rows()
                for right, n in matches.get(tuple(left[c] for c in shared), ())
            ),
        )

    __mul__ = join

    def select(self, condition: Function) -> GMR:
        """σ_θ R : t⃗ ↦ R(t⃗) where θ(t⃗) is true (not NULL), else 0"""
        holds = _function(condition)
        return _collect(self.columns, ((row, m) for row, m in self.rows() if holds(row) is True))

    def sum(self, group: Iterable[str], f: Function | Number = 1) -> GMR:
        """Sum_{A⃗;f} R : a⃗ ↦ Σ_{π_A⃗(t⃗) = a⃗} R(t⃗) * f(t⃗), where an f of NULL adds nothing"""
        group = tuple(group)
        self._know(group)
        value = _function(f)
        return _collect(group, ((row, m * _number(value(row), null=0)) for row, m in self.rows()))

    def rename(self, names: Mapping[str, str]) -> GMR:
        """ρ: ``{"A": "X"}`` calls column A X."""
        self._know(names)
        return GMR(tuple(names.get(c, c) for c in self.columns), self.entries)

    def _know(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.columns:
                raise ValueError(f"no column {name} among {self.columns}")

    # -- Figure 1's tables ---------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        header = (*self.columns, "#")
        body = sorted((*map(_show, row), show_number(m)) for row, m in self.entries.items())
        widths = [max(map(len, column)) for column in zip(header, *body, strict=True)]
        lines = [_line(header, widths), "-+-".join("-" * w for w in widths)]
        return "\n".join([*lines, *(_line(cells, widths) for cells in body)])

    def __repr__(self) -> str:
        return f"GMR({self.columns!r}, {dict(self.entries)!r})"


def _collect(columns: tuple[str, ...], rows: Iterable[tuple[NamedRow, Number]]) -> GMR:
    """The GMR that adds up what falls on the same tuple."""
    total: dict[Tuple, Number] = {}
    for row, multiplicity in rows:
        key = tuple(row[c] for c in columns)
        total[key] = total.get(key, 0) + multiplicity
    return GMR(columns, total)


def _function(f: Function | Number) -> Callable[[NamedRow], Scalar]:
    match f:
        case Const() | Var() | Op():
            return lambda row: evaluate_term(f, row)
        case int() | Fraction():
            return lambda row: f
    _refuse_inexact(f)
    return f


def _number(value: object, null: Number | None = None) -> Number:
    """``value`` if it is an exact number; ``null``, where given, stands in for NULL."""
    _refuse_inexact(value)
    if value is None and null is not None:
        return null
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)):
        raise TypeError(f"a multiplicity is an int or a Fraction, not {value!r}")
    return value


def _refuse_inexact(value: object) -> None:
    if isinstance(value, float):
        raise TypeError(f"{value!r} is a float; write an int or a Fraction, which are exact")


def _show(value: Scalar) -> str:
    return show_constant(value, "string" if isinstance(value, str) else "number")


def _line(cells: Iterable[str], widths: Iterable[int]) -> str:
    """Left-aligned but for the multiplicity, which is last."""
    *values, multiplicity = (pair for pair in zip(cells, widths, strict=True))
    return " | ".join([*(cell.ljust(width) for cell, width in values), multiplicity[0].rjust(multiplicity[1])])
