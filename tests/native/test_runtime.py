"""The runtime of the native engine by itself: its C++ tests, plain and under sanitizers, and its arithmetic beside
Python's exact numbers."""

from __future__ import annotations

import datetime as dt
import random
import shutil
import struct
import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import viewlet
from viewlet.algebra.functions.calendar import MICROSECONDS_PER_DAY, add_months

HERE = Path(__file__).parent
RUNTIME = Path(viewlet.__file__).parent / "engines" / "native" / "runtime"
COMPILER = shutil.which("g++") or shutil.which("clang++")
FLAGS = [
    "-std=c++20",
    "-fno-exceptions",
    "-fno-rtti",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-Wall",
    "-Wextra",
    "-Werror",
]
PLAIN = ["-O2", "-march=native", "-DSMALL=0"]
WITHOUT_FMA = ["-O2", "-DSMALL=1"]
SANITIZED = ["-O0", "-g", "-march=native", "-DSMALL=1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
LIMIT = 60  # seconds for a program that takes two

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

Build = Callable[[str, list[str]], Path]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("runtime")

    def build(name: str, options: list[str]) -> Path:
        program = folder / f"{name}{hash(tuple(options))}"
        source = str(HERE / f"{name}.cpp")
        command = [*str(COMPILER).split(), *FLAGS, *options, f"-I{RUNTIME}", source, "-o", str(program)]
        if not program.exists():
            subprocess.run(command, check=True)
        return program

    return build


def has_sanitizers(folder: Path) -> bool:
    (folder / "nothing.cpp").write_text("int main() {}", encoding="utf-8")
    command = [*str(COMPILER).split(), *SANITIZED, str(folder / "nothing.cpp"), "-o", str(folder / "nothing")]
    built = subprocess.run(command, capture_output=True).returncode == 0
    return built and subprocess.run([str(folder / "nothing")], capture_output=True).returncode == 0


TESTS = sorted(path.stem for path in HERE.glob("test_*.cpp"))


@pytest.mark.parametrize("name", TESTS)
def test_plain(name: str, build: Build) -> None:
    subprocess.run([str(build(name, PLAIN))], check=True, timeout=LIMIT)


@pytest.mark.parametrize("name", TESTS)
def test_sanitized(name: str, build: Build, tmp_path: Path) -> None:
    if not has_sanitizers(tmp_path):
        pytest.skip("the compiler has no sanitizers")
    subprocess.run([str(build(name, SANITIZED))], check=True, timeout=LIMIT)


def test_no_fused_multiply_add(build: Build) -> None:
    subprocess.run([str(build("test_real", WITHOUT_FMA))], check=True, timeout=LIMIT)


# -- arithmetic: Fraction is the referee ------------------------------------------------------------------------------

Calculate = Callable[[list[str]], list[list[str]]]


@pytest.fixture(scope="module", params=[PLAIN, WITHOUT_FMA], ids=["fma", "no fma"])
def calculate(request: pytest.FixtureRequest, build: Build) -> Calculate:
    program = build("calculate", request.param)

    def calculate(lines: list[str]) -> list[list[str]]:
        run = subprocess.run(
            [str(program)], input="\n".join(lines), capture_output=True, text=True, check=True, timeout=LIMIT
        )
        results = [line.split() for line in run.stdout.splitlines()]
        assert len(results) == len(lines)
        return results

    return calculate


def wide(value: int) -> str:
    return f"{value >> 64} {value & (1 << 64) - 1}"


def show(value: float) -> str:
    return struct.pack(">d", value).hex()


def read(text: str) -> float:
    return struct.unpack(">d", bytes.fromhex(text.rjust(16, "0")))[0]


def random_wide(rng: random.Random) -> int:
    value = rng.getrandbits(rng.randrange(1, 128))
    return -value if rng.random() < 0.5 else value


def random_real(rng: random.Random) -> tuple[float, float]:
    """hi + lo, where hi is the sum rounded."""
    hi = rng.choice([-1, 1]) * rng.random() * 2.0 ** rng.randrange(-60, 60)
    lo = hi * 2.0**-53 * rng.choice([0.0, rng.uniform(-0.5, 0.5), 2.0 ** -rng.randrange(2, 60)])
    return hi + lo, lo - ((hi + lo) - hi)


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_exact_numbers(operation: str, calculate: Calculate) -> None:
    """The exact result, or a fault exactly where 128 bits do not hold it."""
    rng = random.Random(1)
    edges = [sign * (2**k + d) for k in (0, 31, 32, 62, 63, 64, 65, 126) for d in (-1, 0, 1) for sign in (1, -1)]
    edges += [2**127 - 1, -(2**127)]
    pairs = [(a, b) for a in edges for b in edges]
    pairs += [(random_wide(rng), random_wide(rng)) for _ in range(20000)]
    results = calculate([f"{operation} {wide(a)} {wide(b)}" for a, b in pairs])
    faults = 0
    for (a, b), (high, low, fault) in zip(pairs, results, strict=True):
        expected = OPERATIONS[operation](a, b)
        fits = -(2**127) <= expected < 2**127
        assert fault == str(int(not fits)), (a, b)
        assert not fits or (int(high) << 64) + int(low) == expected, (a, b)
        faults += not fits
    assert 0 < faults < len(pairs) - 1000


def test_to_double(calculate: Calculate) -> None:
    """The nearest double of value / 10^scale, as Python divides integers; ties go to the even one."""
    rng = random.Random(2)
    cases = [(random_wide(rng), rng.randrange(39)) for _ in range(30000)]
    cases += [
        (sign * (2**k + d), s) for k in range(50, 127) for d in (-1, 0, 1) for sign in (1, -1) for s in (0, 1, 23)
    ]
    cases += [(0, scale) for scale in range(39)]
    cases += [((2**53 + 2 * d + 1) * 10**s, s) for d in range(50) for s in range(20)]
    results = calculate([f"to_double {wide(value)} {scale}" for value, scale in cases])
    for (value, scale), (result,) in zip(cases, results, strict=True):
        assert read(result) == value / 10**scale, (value, scale)


def test_real_of(calculate: Calculate) -> None:
    rng = random.Random(3)
    cases = [(random_wide(rng), rng.randrange(39)) for _ in range(20000)]
    cases += [(random_wide(rng), 0) for _ in range(5000)] + [(2**127 - 1, 0), (-(2**127), 0), (2**126, 0)]
    results = calculate([f"real_of {wide(value)} {scale}" for value, scale in cases])
    for (value, scale), (hi, lo) in zip(cases, results, strict=True):
        expected, got = Fraction(value, 10**scale), Fraction(read(hi)) + Fraction(read(lo))
        assert abs(got - expected) <= abs(expected) * Fraction(1, 2**100), (value, scale)
        assert scale or abs(value) >= 2**106 or got == expected
        assert read(hi) + read(lo) == read(hi)


@pytest.mark.parametrize("operation", ["+", "-", "*", "/"])
def test_double_doubles(operation: str, calculate: Calculate) -> None:
    """A relative error of at most 2⁻⁹⁹ of the exact result, also where a sum cancels."""
    rng = random.Random(4)
    pairs = [(random_real(rng), random_real(rng)) for _ in range(10000)]
    pairs += [((hi, lo), (-hi, lo * rng.uniform(-2, 2))) for (hi, lo), _ in pairs[:2000]]
    results = calculate([f"{operation} {' '.join(map(show, a + b))}" for a, b in pairs])
    for (a, b), (hi, lo) in zip(pairs, results, strict=True):
        x, y = (Fraction(hi) + Fraction(lo) for hi, lo in (a, b))
        expected = {"+": x + y, "-": x - y, "*": x * y, "/": x / y}[operation]
        got = Fraction(read(hi)) + Fraction(read(lo))
        assert abs(got - expected) <= abs(expected) * Fraction(1, 2**99), (a, b)
        assert read(hi) + read(lo) == read(hi), "normalised"


def test_add_months(calculate: Calculate) -> None:
    """As the algebra defines it, in the years that Python's dates have."""
    rng = random.Random(5)
    first, last = (dt.date(year, 1, 1).toordinal() - dt.date(1970, 1, 1).toordinal() for year in (101, 9900))
    days = [rng.randrange(first, last) for _ in range(20000)] + list(range(10950, 10950 + 800))
    cases = [
        (day * MICROSECONDS_PER_DAY + rng.randrange(MICROSECONDS_PER_DAY), rng.randrange(-1200, 1200)) for day in days
    ]
    cases += [(day * MICROSECONDS_PER_DAY, months) for day in range(-400, 400, 7) for months in range(-14, 15)]
    results = calculate([f"add_months {moment} {months}" for moment, months in cases])
    for (moment, months), (result,) in zip(cases, results, strict=True):
        assert int(result) == add_months(moment, months), (moment, months)
