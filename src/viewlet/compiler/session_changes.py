"""Deltas of sessions: an event moves the rows that come to another session, and no others.

J(p, t, w) has the start w of the session of each time t (:mod:`viewlet.algebra.sessions`). A row at @u that is the
first one there, or the last one, changes J in few places. Let n be the rows of K at @u before the event.

    +  [n = 0] ⋈ ( (t := @u) ⋈ W(w)                                        its own time
                 + J(p, t, s) ⋈ [@u < s <= @u + gap] ⋈ W(w)                 the session that begins in the gap after it
                 − J(p, t, w) ⋈ [@u < w <= @u + gap] )                      is no longer one by itself
    −  [n = 1] ⋈ ( − (t := @u) ⋈ J(p, t, w)
                 + J(p, @u, s) ⋈ J(p, t, s) ⋈ [t > @u] ⋈ N(w)               the rows that it held to those before it
                 − J(p, @u, w) ⋈ J(p, t, w) ⋈ [t > @u] ⋈ N(v) )

W(w) is the session that the row comes to: that of the last row in the gap before it, or else its own. N(v) is the next
row, where it comes within the gap and no other row lies in the gap before it.
"""

from __future__ import annotations

from collections.abc import Iterator

from viewlet.algebra.query import (
    ZERO,
    Bind,
    Compare,
    Exists,
    Query,
    Value,
    join,
    negate,
    outputs,
    substitute,
    sum_,
    union,
)
from viewlet.algebra.sessions import Sessions, rows_of, sessions_of
from viewlet.algebra.terms import ZERO_TERM, Term, Var, number, op
from viewlet.program.trigger import Event


def session_change(q: Query, e: Event) -> Query | None:
    """ΔJ where Q is J or Exists(J), and the event moves few rows of it; None where that is not known."""
    sessions = sessions_of(q.query if isinstance(q, Exists) else q)
    return None if sessions is None else delta_of_sessions(sessions, e)


def delta_of_sessions(s: Sessions, e: Event) -> Query | None:
    """ΔJ for ±R(x⃗); None where one event may change K in other ways than by one row."""
    table = rows_of(s.rows)
    if table is None or e.kind == "Δ" or len(set(table.vars)) < len(table.vars):
        return None
    if table.name != e.relation:
        return ZERO
    given = {var: Var(param) for var, param in zip(table.vars, e.params, strict=True)}
    around = [substitute(f, given) for f in s.rows if f is not table]
    around += [Bind(var, Value(term)) for var, term in given.items() if var in s.key]
    return _Change(s, join(*around), given.get(s.at, Var(s.at)), e.sign).query


class _Change:
    """One row of K that comes or goes, at the time ``at`` of the key that ``around`` gives."""

    def __init__(self, s: Sessions, around: Query, at: Term, sign: int) -> None:
        self.s, self.around, self.at, self.sign = s, around, at, sign

    @property
    def query(self) -> Query:
        same = self.s.name("same")
        here = Compare("=", Var(self.s.name("same.u")), self.at)
        alone = Compare("=", Var(same), ZERO_TERM if self.sign > 0 else number(1))
        before = join(self.around, Bind(same, self.s.count("same.u", here)), alone)
        terms = self.of_insert() if self.sign > 0 else self.of_delete()
        shown = self.s.key | {self.s.time, self.s.start}
        whole = [join(before, term) for term in terms]
        return union(*(sum_(shown & outputs(q), q) for q in whole))

    def of_insert(self) -> Iterator[Query]:
        s = self.s
        following = s.name("following")
        for joined in self.joins():
            yield join(Bind(s.time, Value(self.at)), joined)
            yield join(s.member(s.time, following, "following"), *self.in_gap_after(following), joined)
        yield negate(join(s.member(s.time, s.start, "alone"), *self.in_gap_after(s.start)))

    def joins(self) -> Iterator[Query]:
        """W(w)"""
        s, near, last = self.s, self.s.name("near"), self.s.name("last")
        none = Bind(near, s.count("near.u", *s.gap_before("near.u", self.at))), Compare("=", Var(near), ZERO_TERM)
        yield join(*none, Bind(s.start, Value(self.at)))
        is_last = self.at_most(self.count_up_to("<", self.at, "earlier"), self.count_up_to("<=", Var(last), "upto"))
        yield join(s.member(last, s.start, "last"), *s.gap_before("last", self.at), *is_last)

    def of_delete(self) -> Iterator[Query]:
        s, here, held, first = self.s, self.s.name("here"), self.s.name("held"), self.s.name("first")
        own = Bind(s.time, Value(self.at))
        yield negate(join(own, s.member(s.time, s.start, "own")))
        later = Bind(here, Value(self.at)), Compare(">", Var(s.time), self.at)
        for start, begin, sign in ((held, s.start, 1), (s.start, first, -1)):
            both = s.member(here, start, "here"), s.member(s.time, start, "held")
            moved = join(*later, *both, *self.next_row(begin))
            yield moved if sign > 0 else negate(moved)

    def next_row(self, begin: str) -> tuple[Query, ...]:
        """N(v)"""
        s, lost = self.s, self.s.name("lost")
        earlier, upto = self.count_up_to("<", Var(begin), "earlier"), self.count_up_to("<=", self.at, "upto")
        u = Var(s.name("lost.u"))
        gap = Compare(">=", u, op("+", Var(begin), number(-s.gap))), Compare("<", u, self.at)
        others = Bind(lost, s.count("lost.u", *gap)), Compare("=", Var(lost), ZERO_TERM)
        return s.known(begin, "next"), *self.in_gap_after(begin), *self.at_most(earlier, upto), *others

    def in_gap_after(self, v: str) -> tuple[Query, ...]:
        return Compare(">", Var(v), self.at), Compare("<=", Var(v), op("+", self.at, number(self.s.gap)))

    def count_up_to(self, symbol: str, at: Term, word: str) -> Bind:
        """(c := Sum_p(K(p, u) ⋈ [u θ at]))"""
        s = self.s
        return Bind(s.name(word), s.count(f"{word}.u", Compare(symbol, Var(s.name(f"{word}.u")), at)))

    @staticmethod
    def at_most(few: Bind, many: Bind) -> tuple[Query, ...]:
        return few, many, Compare("<=", Var(few.var), Var(many.var))
