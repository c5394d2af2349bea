"""The living definition: what every query of the calculus means, over any store of GMRs, in exact arithmetic.

A query is planned once for the variables that are bound where it is evaluated, then run as nested loops: each step
extends an environment (variable ↦ value) and multiplies multiplicities. ⋈ commutes, so a join takes its factors in any
order in which inputs come before their use; the order chosen only changes the time it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import Final, Protocol

from typing_extensions import assert_never

from viewlet.algebra.query import (
    Atom,
    Bind,
    Compare,
    Delta,
    Exists,
    Join,
    Materialize,
    Query,
    Rel,
    Sum,
    Union,
    Value,
    View,
    atoms,
    inputs,
    outputs,
)
from viewlet.algebra.remembered import remembered
from viewlet.algebra.terms import (
    COMPARISONS,
    LAZY,
    Const,
    Number,
    Op,
    Scalar,
    Term,
    Var,
    apply,
    apply_lazily,
    can_fail,
    exact,
    op,
)

Key = tuple[Scalar, ...]
Env = dict[str, Scalar]
Entries = dict[Key, Number]


class _Unbound:
    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND: Final = _Unbound()
Pattern = tuple[Scalar | _Unbound, ...]


class Reader(Protocol):
    """A store: the entries of an atom (keys are a view's inputs, then its outputs) that agree with a pattern."""

    def __call__(self, atom: Atom, pattern: Pattern) -> Iterable[tuple[Key, Number]]: ...


Plan = Callable[[Env, Reader], Iterator[tuple[Env, Number]]]


def evaluate(q: Query, read: Reader, columns: tuple[str, ...], env: Mapping[str, Scalar] | None = None) -> Entries:
    """The GMR of Q over ``columns`` where ``env`` gives Q's inputs (and restricts whatever else it names)."""
    env = dict(env or {})
    result: Entries = {}
    for row, m in plan(q, frozenset(env))(env, read):
        key = tuple([row[c] for c in columns])
        result[key] = result.get(key, 0) + m
    return {key: exact(m) for key, m in result.items() if m != 0}


def over(database: Mapping[str, Entries]) -> Reader:
    """Read plain dictionaries: relation R under "R", its update ΔR under "ΔR", view V under "V"."""

    def read(atom: Atom, pattern: Pattern) -> Iterator[tuple[Key, Number]]:
        name = f"Δ{atom.name}" if isinstance(atom, Delta) else atom.name
        for key, m in database.get(name, {}).items():
            if all(p is UNBOUND or p == k for p, k in zip(pattern, key, strict=True)):
                yield key, m

    return read


@remembered(1 << 14)
def plan(q: Query, bound: frozenset[str]) -> Plan:
    """How to extend environments that bind ``bound`` by the tuples of Q, with their multiplicities."""
    match q:
        case Rel() | Delta() | View():
            return _plan_atom(q, bound)
        case Value(term):
            return _plan_value(term)
        case Compare(op, left, right):
            return _plan_compare(op, left, right)
        case Bind(var, inner):
            return _plan_bind(var, inner, bound)
        case Exists(inner):
            return _plan_groups(tuple(sorted(outputs(q) - bound)), plan(inner, bound), lambda m: 1)
        case Sum(group, inner):
            return _plan_groups(tuple(sorted(group - bound)), plan(inner, bound), lambda m: m)
        case Join(factors):
            return _plan_join(factors, bound)
        case Union(branches):
            plans = [plan(b, bound) for b in branches]
            return lambda env, read: (extended for p in plans for extended in p(env, read))
        case Materialize(inner):
            return plan(inner, bound)
        case _:
            assert_never(q)


def _plan_atom(atom: Atom, bound: frozenset[str]) -> Plan:
    """R(x⃗): one extension for each entry that agrees with what is bound."""
    names = atom.inputs + atom.outputs if isinstance(atom, View) else atom.vars
    free = [(i, n) for i, n in enumerate(names) if n not in bound]
    repeated = len({n for _, n in free}) < len(free)

    def run(env: Env, read: Reader) -> Iterator[tuple[Env, Number]]:
        for key, m in read(atom, tuple([env.get(n, UNBOUND) if n in bound else UNBOUND for n in names])):
            if not free:
                yield env, m
                continue
            row = {**env, **{n: key[i] for i, n in free}}
            if not repeated or all(row[n] == key[i] for i, n in free):
                yield row, m

    return run


def term_function(term: Term) -> Callable[[Env], Scalar]:
    """A term as a function of the environment."""
    match term:
        case Const(value):
            return lambda env: value
        case Var(name):
            return lambda env: env[name]
        case Op(name, args):
            parts = [term_function(a) for a in args]
            if name in LAZY:
                return lambda env: apply_lazily(name, parts, lambda p: p(env))
            return lambda env: apply(name, tuple([p(env) for p in parts]))


def _plan_value(term: Term) -> Plan:
    """{⟨⟩ ↦ f}; NULL adds nothing to a sum, so it is 0."""
    value = term_function(term)

    def run(env: Env, read: Reader) -> Iterator[tuple[Env, Number]]:
        v = value(env)
        if v is not None and v != 0:
            assert not isinstance(v, str), f"{term} is no number"
            yield env, v

    return run


def _plan_compare(op: str, left: Term, right: Term) -> Plan:
    """σ: 1 where the comparison holds; unknown (a NULL side) is not true."""
    lhs, rhs, holds = term_function(left), term_function(right), COMPARISONS[op]

    def run(env: Env, read: Reader) -> Iterator[tuple[Env, Number]]:
        a, b = lhs(env), rhs(env)
        if a is not None and b is not None and holds(a, b):
            yield env, 1

    return run


def _plan_bind(var: str, inner: Query, bound: frozenset[str]) -> Plan:
    """⟨var: value⟩ ↦ 1; where ``var`` has a value already, a test of identity (in which NULL is NULL)."""
    value = scalar(inner, bound)

    def run(env: Env, read: Reader) -> Iterator[tuple[Env, Number]]:
        v = value(env, read)
        if var not in bound:
            yield {**env, var: v}, 1
        elif env[var] == v:
            yield env, 1

    return run


def scalar(q: Query, bound: frozenset[str]) -> Callable[[Env, Reader], Scalar]:
    """The value of a query all of whose variables are bound: the term's own for ``Value``, else the multiplicity."""
    if isinstance(q, Value):
        value = term_function(q.term)
        return lambda env, read: value(env)
    rows = plan(q, bound)
    return lambda env, read: exact(sum([m for _, m in rows(env, read)]))


def _plan_groups(names: tuple[str, ...], inner: Plan, weigh: Callable[[Number], Number]) -> Plan:
    """Sum_A (and Exists, which weighs every multiplicity but 0 as 1)."""

    def run(env: Env, read: Reader) -> Iterator[tuple[Env, Number]]:
        groups: Entries = {}
        for row, m in inner(env, read):
            key = tuple([row[n] for n in names])
            groups[key] = groups.get(key, 0) + m
        for key, m in groups.items():
            if m != 0:
                yield {**env, **dict(zip(names, key, strict=True))}, weigh(exact(m))

    return run


def _plan_join(factors: tuple[Query, ...], bound: frozenset[str]) -> Plan:
    """⋈: each factor in turn extends what the ones before it bound; a row's own values are one number."""
    plans = []
    for f in join_order(_one_value(factors), bound):
        plans.append(plan(f, bound))
        bound |= outputs(f)
    return reduce(_followed_by, plans)


def _followed_by(first: Plan, then: Plan) -> Plan:
    def run(env: Env, read: Reader) -> Iterator[tuple[Env, Number]]:
        for row, m in first(env, read):
            for result, m_rest in then(row, read):
                yield result, m * m_rest

    return run


def _one_value(factors: tuple[Query, ...]) -> tuple[Query, ...]:
    """f ⋈ g is {⟨⟩ ↦ f · g}."""
    terms = [f.term for f in factors if isinstance(f, Value)]
    others = tuple(f for f in factors if not isinstance(f, Value))
    return (*others, Value(reduce(lambda a, b: op("*", a, b), terms))) if len(terms) > 1 else factors


@remembered(1 << 14)
def join_order(factors: tuple[Query, ...], bound: frozenset[str]) -> tuple[Query, ...]:
    """An order in which every factor's inputs are bound: tests first, then what loops least."""
    rest, order = list(factors), list[Query]()
    while rest:
        ready = [f for f in rest if inputs(f) <= bound]
        if not ready:
            missing = ", ".join(sorted(frozenset().union(*map(inputs, rest)) - bound))
            raise ValueError(f"no order gives {missing} a value in {' * '.join(f.text for f in factors)}")
        chosen = min(ready, key=lambda f: effort(f, bound))
        rest.remove(chosen)
        order.append(chosen)
        bound |= outputs(chosen)
    return tuple(order)


LOOP, SCAN = (5, 0), (6, 0)  # from here on a factor loops over what agrees with it, or over all there is


def effort(f: Query, bound: frozenset[str]) -> tuple[int, int]:
    """Cheapest first; a nested aggregate before a loop, so that it is computed once and not once per row.

    What can fail comes after the tests that may spare it.
    """
    loops = len(outputs(f) - bound)
    match f:
        case Value(term) | Bind(_, Value(term)):
            return 0, loops + 2 * can_fail(term)
        case Compare(_, left, right):
            return 0, loops + 2 * (can_fail(left) or can_fail(right))
        case Rel() | Delta() | View() if loops == 0:
            return 1, 0
        case Bind():
            return 3, loops
        case _ if loops == 0:
            return 2, 0
        case _ if _starts_from_update(f, bound):
            return 4, loops
        case _:
            return (5 if outputs(f) & bound else 6), loops


def _starts_from_update(f: Query, bound: frozenset[str]) -> bool:
    """The update gives all that F has to give: it is looked at first, and then only what agrees with it."""
    match f:
        case Union(parts):
            return all(_starts_from_update(p, bound) for p in parts)
        case Join(parts):
            while more := [
                p for p in parts if inputs(p) <= bound < bound | outputs(p) and _starts_from_update(p, bound)
            ]:
                bound = bound.union(*map(outputs, more))
            return outputs(f) <= bound
        case Bind():
            return inputs(f) <= bound  # a value that the update has or had
        case Sum(_, inner) | Exists(inner):
            return _starts_from_update(inner, bound) or all(isinstance(a, Delta) for a in atoms(f))
        case _:
            return all(isinstance(a, Delta) for a in atoms(f))
