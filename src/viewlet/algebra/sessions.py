"""Sessions: rows of a key that follow one another within a gap, as a query like others.

K are rows with a key p and a time u. A row starts a session where no other lies in the gap before it, and each time
belongs to the last start that is not after it:

    S(p, v)    = Exists(K(p, v)) ⋈ (b := Sum_p(K(p, u) ⋈ [u < v] ⋈ [u >= v - gap])) ⋈ [b = 0]
    J(p, t, w) = Exists(K(p, t)) ⋈ S(p, w) ⋈ [w <= t] ⋈ (m := Sum_p(S(p, v) ⋈ [v > w] ⋈ [v <= t])) ⋈ [m = 0]

Exists(J) is a factor with one w for each t. The compiler knows it again: an event moves few rows of J, where the rules
for what J is made of would evaluate the whole key again (:mod:`viewlet.compiler.session_changes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from viewlet.algebra.canonical import canonical
from viewlet.algebra.query import (
    Bind,
    Compare,
    Exists,
    Query,
    Rel,
    Sum,
    Value,
    factors,
    inputs,
    join,
    outputs,
    relations,
    rename,
    sum_,
    variables,
)
from viewlet.algebra.remembered import remembered
from viewlet.algebra.terms import ZERO_TERM, Term, Var, number, op


@dataclass(frozen=True)
class Sessions:
    """J, by the rows K, what they are called there, and what J calls a time and the start of its session."""

    rows: tuple[Query, ...]
    key: frozenset[str]
    at: str
    gap: int
    time: str
    start: str

    @property
    def query(self) -> Query:
        """J(p, t, w)"""
        inner = self.is_start("inside")
        after = Compare(">", Var(self.name("inside")), Var(self.start))
        until = Compare("<=", Var(self.name("inside")), Var(self.time))
        starts = sum_(self.key, join(*inner, after, until))
        between = Bind(self.name("between"), starts), Compare("=", Var(self.name("between")), ZERO_TERM)
        is_last = Compare("<=", Var(self.start), Var(self.time))
        body = join(self.known(self.time, "row"), *self._starts(self.start, "start"), is_last, *between)
        return Sum(self.key | {self.time, self.start}, body)

    def name(self, word: str) -> str:
        """A local variable that nothing else has."""
        return f"{self.start}.{word}"

    def is_start(self, word: str) -> tuple[Query, ...]:
        """S(p, v), with v called after ``word``"""
        return self._starts(self.name(word), word)

    def _starts(self, at: str, word: str) -> tuple[Query, ...]:
        count = self.name(f"{word}.before")
        return (
            self.known(at, word),
            Bind(count, self.count(f"{word}.other", *self.gap_before(f"{word}.other", Var(at)))),
            Compare("=", Var(count), ZERO_TERM),
        )

    def gap_before(self, word: str, at: Term) -> tuple[Query, ...]:
        """[u < v] ⋈ [u >= v - gap]"""
        u = Var(self.name(word))
        return Compare("<", u, at), Compare(">=", u, op("+", at, number(-self.gap)))

    def copy(self, at: str, word: str) -> tuple[Query, ...]:
        """K with its time under another name, and other local variables."""
        body = join(*self.rows)
        local = variables(body) - self.key - {self.at}
        return factors(rename(body, {**{v: f"{word}.{v}" for v in local}, self.at: at}))

    def count(self, word: str, *tests: Query) -> Query:
        """Sum_p(K(p, u) ⋈ θ), with u called after ``word``"""
        return sum_(self.key, join(*self.copy(self.name(word), word), *tests))

    def known(self, at: str, word: str) -> Query:
        """Exists(K(p, at)), with what tests the key and the time alone outside"""
        group, parts = self.key | {at}, self.copy(at, word)
        tests = [f for f in parts if isinstance(f, Compare) and inputs(f) <= group]
        return join(*tests, Exists(sum_(group, join(*(f for f in parts if f not in tests)))))

    def member(self, time: str, start: str, word: str) -> Query:
        """Exists(J(p, t, w)) with a time and a start that are called otherwise"""
        own = {v: f"{word}.{v}" for v in variables(self.query) - self.key - {self.time, self.start}}
        return Exists(rename(self.query, {**own, self.time: time, self.start: start}))


@remembered(1 << 15)
def sessions_of(q: Query) -> Sessions | None:
    """What J is made of, where Q is one; None for any other query."""
    if not isinstance(q, Sum) or len(relations(q)) != 1:
        return None
    wanted = canonical(q) if _may_be(q) else ("", {})
    return next((s for s in _candidates(q) if _equal(canonical(s.query), wanted)), None)


def is_sessions(q: Query) -> bool:
    """Q = J, or Exists(J)"""
    return sessions_of(q.query if isinstance(q, Exists) else q) is not None


def _equal(one: tuple[str, dict[str, str]], other: tuple[str, dict[str, str]]) -> bool:
    shared = one[1].keys() & other[1].keys()
    return one[0] == other[0] and all(one[1][v] == other[1][v] for v in shared)


def _may_be(q: Sum) -> bool:
    return any(True for _ in _candidates(q))


def _candidates(q: Sum) -> Iterator[Sessions]:
    parts = factors(q.query)
    counts = [f for f in parts if isinstance(f, Bind) and isinstance(f.query, Sum) and relations(f)]
    if len(counts) != 2 or not len(q.group) >= 2:
        return
    for test in parts:
        match test:
            case Compare("<=", Var(start), Var(time)) if start != time and {start, time} <= q.group:
                for count in counts:
                    yield from _counted(q, count, time, start)


def _counted(q: Sum, count: Bind, time: str, start: str) -> Iterator[Sessions]:
    """By the count of rows in the gap before a start."""
    assert isinstance(count.query, Sum)
    body = factors(count.query.query)
    tests = [f for f in body if isinstance(f, Compare) and start in inputs(f)]
    rows = tuple(f for f in body if f not in tests)
    key = q.group - {time, start}
    if len(tests) != 2 or not all(isinstance(f, (Rel, Compare, Bind)) for f in rows) or time in inputs(count):
        return
    for test in tests:
        match test:
            case Compare("<", Var(at), Var(name)) if name == start and at in outputs(join(*rows)) - key:
                gap = next((g for f in tests if (g := _gap(f, start)) is not None), None)
                if gap is not None and key <= outputs(join(*rows)):
                    yield Sessions(rows, key, at, gap, time, start)


def _gap(test: Query, start: str) -> int | None:
    """g of [u >= start - g]"""
    match test:
        case Compare(">=", Var(), right):
            shift = right.args if hasattr(right, "args") else ()
            for part in shift:
                constant = getattr(part, "value", None)
                if isinstance(constant, int) and op("+", Var(start), number(constant)) == right:
                    return -constant
    return None


def rows_of(rows: tuple[Query, ...]) -> Rel | None:
    """The one relation of K; None where K is more than its rows, filtered, with computed columns."""
    tables = [f for f in rows if isinstance(f, Rel)]
    plain = all(isinstance(f, (Rel, Compare)) or (isinstance(f, Bind) and isinstance(f.query, Value)) for f in rows)
    return tables[0] if len(tables) == 1 and plain else None
