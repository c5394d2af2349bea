"""The names in a loop nest: which it binds, which it uses, and the same nest under other names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from viewlet.algebra.query import Atom, Compare, Delta, Rel, View, rename
from viewlet.algebra.terms import Var, free, substitute_term
from viewlet.program.loops import (
    Add,
    Block,
    EachGroup,
    Emit,
    Get,
    Group,
    Let,
    Loop,
    Nonzero,
    Product,
    Put,
    Same,
    Step,
    Test,
    Total,
    blocks,
)

Names = Mapping[str, str]


def columns_of(atom: Atom) -> tuple[str, ...]:
    return atom.inputs + atom.outputs if isinstance(atom, View) else atom.vars


def each_name_once(block: Block, taken: set[str], numbers: Iterator[int], keep: frozenset[str] = frozenset()) -> Block:
    """The branches of a union bind the same names; with names of their own, steps may be put in another order.

    ``keep``: the keys of a group around, which every branch inside has to bind.
    """
    done: Block = ()
    while block:
        step, rest = block[0], block[1:]
        fresh = {v: f"{v}${next(numbers)}" for v in _binds(step) if v in taken and v not in keep}
        (step,) = renamed((step,), fresh)
        if isinstance(step, (Let, Total, Group)):
            rest = renamed(rest, fresh)
        taken.update(_binds(step))
        if not isinstance(step, (Let, Add, Put, Emit)):
            inside = keep | frozenset(_group_keys(step)) if isinstance(step, Group) else keep
            step = replace(step, body=each_name_once(step.body, taken, numbers, inside))
        done, block = (*done, step), rest
    return done


def _binds(step: Step) -> tuple[str, ...]:
    """The names that a step itself gives values to: in its body, or from there on."""
    match step:
        case Let(var, _, _) | Total(var, _):
            return (var,)
        case Group(var, _):
            return (var, *_group_keys(step))
        case Get(_, value, _):
            return (value,)
        case Loop(source, bound, value, _):
            return (value, *dict.fromkeys(v for v in columns_of(source) if v not in bound))
        case _:
            return ()


def _group_keys(group: Group) -> tuple[str, ...]:
    puts = (s for inner in blocks(group.body) for s in inner if isinstance(s, Put) and s.name == group.name)
    return tuple(dict.fromkeys(key for put in puts for key in put.keys))


def bound_names(block: Block) -> Iterator[str]:
    """The names that a block gives values to, in order."""
    for step in block:
        match step:
            case Let(var, _, _):
                yield var
            case Get(_, value, body):
                yield value
                yield from bound_names(body)
            case Loop(source, bound, value, body):
                yield value
                yield from dict.fromkeys(v for v in columns_of(source) if v not in bound)
                yield from bound_names(body)
            case Total(var, body) | Group(var, body):
                yield var
                yield from bound_names(body)
            case Same(body=body) | Test(body=body) | Nonzero(body=body) | EachGroup(body=body):
                yield from bound_names(body)
            case Add() | Put() | Emit():
                pass


def renamed(block: Block, names: Names) -> Block:
    return tuple(_renamed(step, names) for step in block) if names else block


def _renamed(step: Step, names: Names) -> Step:
    terms = {v: Var(n) for v, n in names.items()}

    def name(v: str) -> str:
        return names.get(v, v)

    def product(p: Product) -> Product:
        return tuple(replace(f, term=substitute_term(f.term, terms)) for f in p)

    match step:
        case Let(var, term, plain):
            return Let(name(var), substitute_term(term, terms), plain)
        case Same(var, term, plain, body):
            return Same(name(var), substitute_term(term, terms), plain, renamed(body, names))
        case Test(Compare(op, left, right), nullable, plain, body):
            compare = Compare(op, substitute_term(left, terms), substitute_term(right, terms))
            return Test(compare, nullable, plain, renamed(body, names))
        case Get(source, value, body):
            return Get(_atom(source, names), name(value), renamed(body, names))
        case Loop(source, bound, value, body):
            return Loop(_atom(source, names), frozenset(map(name, bound)), name(value), renamed(body, names))
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
        case EachGroup(var, keys, body):
            return EachGroup(name(var), tuple(map(name, keys)), renamed(body, names))
        case Emit(key, p, view):
            return Emit(tuple(map(name, key)), product(p), view)


def _atom(atom: Atom, names: Names) -> Atom:
    found = rename(atom, names)
    assert isinstance(found, (Rel, Delta, View))
    return found


def free_names(block: Block) -> frozenset[str]:
    """The names that a block uses and does not bind itself."""
    return frozenset(_used(block)) - frozenset(bound_names(block))


def _used(block: Block) -> Iterator[str]:
    for step in block:
        yield from _used_by(step)
        if not isinstance(step, (Let, Add, Put, Emit)):
            yield from _used(step.body)


def _used_by(step: Step) -> Iterator[str]:
    match step:
        case Let(_, term, _):
            yield from free(term)
        case Same(var, term, _, _):
            yield from {var, *free(term)}
        case Test(compare, _, _, _):
            yield from free(compare.left) | free(compare.right)
        case Get(source, _, _) | Loop(source, _, _, _):
            yield from columns_of(source)
        case Add(var, product) | Put(var, _, product):
            yield from {var, *(v for f in product for v in free(f.term))}
            if isinstance(step, Put):
                yield from step.keys
        case Emit(key, product, _):
            yield from {*key, *(v for f in product for v in free(f.term))}
        case Nonzero(var, _) | EachGroup(var, _, _):
            yield var
            if isinstance(step, EachGroup):
                yield from step.keys
        case Total() | Group():
            pass
