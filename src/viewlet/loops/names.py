"""The names in a loop nest: which it binds, which it uses, and the same nest under other names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import overload

from viewlet.algebra.query import Atom, Compare, Delta, Rel, View, rename
from viewlet.algebra.terms import Term, Var, free, substitute_term
from viewlet.loops.steps import (
    LEAVES,
    Add,
    Block,
    Cut,
    EachGroup,
    EachSlice,
    Emit,
    Extremum,
    Get,
    Group,
    InRun,
    Let,
    Loop,
    Nonzero,
    Order,
    Product,
    Put,
    RangeSum,
    Runs,
    Same,
    Step,
    Test,
    Total,
    blocks,
)

Names = Mapping[str, str]
DEFINE = (Let, RangeSum, Runs, Extremum, Total, Group)  # the steps that name something for those after them


def columns_of(atom: Atom) -> tuple[str, ...]:
    return atom.inputs + atom.outputs if isinstance(atom, View) else atom.vars


def as_written(name: str) -> str:
    """What the query calls a variable that lowering gave a name of its own.

    >>> as_written("$b.price_7$18"), as_written("b.price$3"), as_written("@price")
    ('b.price', 'b.price', '@price')
    """
    name = re.sub(r"(\$\d+)+$", "", name)
    return as_written(re.sub(r"_\d+$", "", name[1:])) if name.startswith("$") else name


def each_name_once(block: Block) -> Block:
    """The block with no name bound twice: the branches of a union bind the same names."""
    known = frozenset(bound_names(block)) | free_names(block)
    numbers = (n for n in count() if not any(name.endswith(f"${n}") for name in known))
    return _once(block, set(), numbers, frozenset())


def _once(block: Block, taken: set[str], numbers: Iterator[int], keep: frozenset[str]) -> Block:
    """``keep``: the keys of a group around, which every branch inside has to bind."""
    done: Block = ()
    while block:
        step, rest = block[0], block[1:]
        fresh = {v: f"{v}${next(numbers)}" for v in binds(step) if v in taken and v not in keep}
        (step,) = renamed((step,), fresh)
        if isinstance(step, DEFINE):
            rest = renamed(rest, fresh)
        taken.update(binds(step))
        if not isinstance(step, LEAVES):
            inside = keep | frozenset(_group_keys(step)) if isinstance(step, Group) else keep
            step = replace(step, body=_once(step.body, taken, numbers, inside))
        done, block = (*done, step), rest
    return done


def binds(step: Step) -> tuple[str, ...]:
    """The names that a step itself gives values to: in its body, or from there on."""
    match step:
        case Let(var, _, _) | Total(var, _):
            return (var,)
        case Group(var, _):
            return (var, *_group_keys(step))
        case EachGroup(value=value) if value:
            return (value,)
        case Get(_, value, _):
            return (value,)
        case Loop(source, bound, value, _, order):
            return (value, *_open(source, bound), *_locals(order))
        case EachSlice(source, bound, _, _, _):
            return _open(source, bound)
        case RangeSum(var, source, bound, order):
            return (var, *_open(source, bound), *_locals(order))
        case Runs(var, source, bound, _, _, total, _):
            return (var, total, *_open(source, bound))
        case Extremum(var, source, bound, _, _):
            return (var, *_open(source, bound))
        case _:
            return ()


def _open(source: Atom, bound: frozenset[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(v for v in columns_of(source) if v not in bound))


def _locals(order: Order | None) -> tuple[str, ...]:
    """What a run's condition calls the run's own keys."""
    cuts = (cut for cuts in order.ranges for cut in cuts) if order else ()
    return tuple(dict.fromkeys(cut.inner for cut in cuts if isinstance(cut, InRun)))


def _group_keys(group: Group) -> tuple[str, ...]:
    puts = (s for inner in blocks(group.body) for s in inner if isinstance(s, Put) and s.name == group.name)
    return tuple(dict.fromkeys(key for put in puts for key in put.keys))


def bound_names(block: Block) -> Iterator[str]:
    """The names that a block gives values to, in order."""
    for step in block:
        yield from (step.name,) if isinstance(step, Group) else binds(step)
        if not isinstance(step, LEAVES):
            yield from bound_names(step.body)


def renamed(block: Block, names: Names) -> Block:
    return tuple(_renamed(step, names) for step in block) if names else block


def _renamed(step: Step, names: Names) -> Step:
    def name(v: str) -> str:
        return names.get(v, v)

    def product(p: Product) -> Product:
        return tuple(replace(f, term=_renamed_term(f.term, names)) for f in p)

    match step:
        case Let(var, term, plain):
            return Let(name(var), _renamed_term(term, names), plain)
        case Same(var, term, plain, body):
            return Same(name(var), _renamed_term(term, names), plain, renamed(body, names))
        case Test(compare, nullable, plain, body):
            return Test(_renamed_compare(compare, names), nullable, plain, renamed(body, names))
        case Get(source, value, body):
            return Get(_atom(source, names), name(value), renamed(body, names))
        case Loop() | EachSlice() | RangeSum() | Runs() | Extremum():
            return _renamed_read(step, names)
        case Total(var, body):
            return Total(name(var), renamed(body, names))
        case Add(var, p):
            return Add(name(var), product(p))
        case Nonzero(var, body):
            return Nonzero(name(var), renamed(body, names))
        case Group(var, body):
            return Group(name(var), renamed(body, names))
        case Put(var, keys, p):
            return Put(name(var), tuple(map(name, keys)), product(p))
        case EachGroup(var, keys, body, value):
            return EachGroup(name(var), tuple(map(name, keys)), renamed(body, names), name(value))
        case Emit(key, p, view):
            return Emit(tuple(map(name, key)), product(p), view)


def _renamed_read(step: Loop | EachSlice | RangeSum | Runs | Extremum, names: Names) -> Step:
    def name(v: str) -> str:
        return names.get(v, v)

    bound = frozenset(map(name, step.bound))
    match step:
        case Loop(source, _, value, body, order):
            ordered = None if order is None else renamed_order(order, names)
            return Loop(_atom(source, names), bound, name(value), renamed(body, names), ordered)
        case EachSlice(source, _, key, summed, body):
            summed = frozenset(map(name, summed))
            return EachSlice(_view(source, names), bound, name(key), summed, renamed(body, names))
        case RangeSum(var, source, _, order):
            return RangeSum(name(var), _view(source, names), bound, renamed_order(order, names))
        case Runs(var, source, _, key, after, total, test):
            test = _renamed_cut(test, names)
            return Runs(name(var), _view(source, names), bound, name(key), after, name(total), test)
        case Extremum(var, source, _, key, greatest, place):
            at = None if place is None else _renamed_term(place, names)
            return Extremum(name(var), _view(source, names), bound, name(key), greatest, at)


def _atom(atom: Atom, names: Names) -> Atom:
    copy = rename(atom, names)
    assert isinstance(copy, (Rel, Delta, View))
    return copy


def _view(view: View, names: Names) -> View:
    copy = rename(view, names)
    assert isinstance(copy, View)
    return copy


def _renamed_compare(compare: Compare, names: Names) -> Compare:
    return Compare(compare.op, _renamed_term(compare.left, names), _renamed_term(compare.right, names))


def _renamed_term(term: Term, names: Names) -> Term:
    return substitute_term(term, {v: Var(names[v]) for v in free(term) if v in names})


def renamed_order(order: Order, names: Names) -> Order:
    ranges = tuple(tuple(_renamed_cut(cut, names) for cut in cuts) for cuts in order.ranges)
    return replace(order, key=names.get(order.key, order.key), ranges=ranges)


@overload
def _renamed_cut(cut: Cut, names: Names) -> Cut: ...
@overload
def _renamed_cut(cut: Cut | InRun, names: Names) -> Cut | InRun: ...
def _renamed_cut(cut: Cut | InRun, names: Names) -> Cut | InRun:
    cut = replace(cut, compare=_renamed_compare(cut.compare, names))
    if isinstance(cut, Cut):
        return cut
    return replace(cut, runs=names.get(cut.runs, cut.runs), inner=names.get(cut.inner, cut.inner))


def free_names(block: Block) -> frozenset[str]:
    """The names that a block uses and does not bind itself."""
    return frozenset(_used(block)) - frozenset(bound_names(block))


def _used(block: Block) -> Iterator[str]:
    for step in block:
        yield from _used_by(step)
        if not isinstance(step, LEAVES):
            yield from _used(step.body)


def _used_by(step: Step) -> Iterator[str]:
    match step:
        case Let(_, term, _):
            yield from free(term)
        case Same(var, term, _, _):
            yield from {var, *free(term)}
        case Test(compare, _, _, _):
            yield from free(compare.left) | free(compare.right)
        case Get(source, _, _) | EachSlice(source, _, _, _, _):
            yield from columns_of(source)
        case Extremum(_, source, _, _, _, place):
            yield from columns_of(source)
            yield from () if place is None else free(place)
        case Loop(source, _, _, _, order) | RangeSum(_, source, _, order):
            yield from columns_of(source)
            yield from _used_in(order)
        case Runs(_, source, _, _, _, _, test):
            yield from {*columns_of(source), *free(test.compare.left), *free(test.compare.right)}
        case Add(var, product) | Put(var, _, product):
            yield from {var, *(v for f in product for v in free(f.term))}
            if isinstance(step, Put):
                yield from step.keys
        case Emit(key, product, _):
            yield from {*key, *(v for f in product for v in free(f.term))}
        case Nonzero(var, _) | EachGroup(var, _, _, _):
            yield var
            if isinstance(step, EachGroup):
                yield from step.keys
        case Total() | Group():
            pass


def _used_in(order: Order | None) -> Iterator[str]:
    for cut in (cut for cuts in order.ranges for cut in cuts) if order else ():
        yield from free(cut.compare.left) | free(cut.compare.right)
        if isinstance(cut, InRun):
            yield cut.runs
