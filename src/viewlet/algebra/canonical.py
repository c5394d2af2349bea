"""Duplicate view elimination (§5.1): two definitions that are equal but for the names of variables are one view."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha1

from viewlet.algebra.query import (
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
    children,
    inputs,
    outputs,
    variables,
)
from viewlet.algebra.terms import Const, Op, Term, Var

Colors = Mapping[str, str]
MOST_TIES = 12


def canonical(q: Query) -> tuple[str, dict[str, str]]:
    """A text that equals another's iff the queries are equal modulo renaming, and the labels it gives variables.

    Colour refinement: a variable's colour is what it looks like from the places it occurs in; ties that remain are
    symmetric almost always, and are broken by trying each member of the first tied class; after MOST_TIES tries by the
    first (two equal queries may then be taken for different ones, never the other way round).
    """
    colors = refine(q, {v: _role(v, q) for v in variables(q)})
    text, order = _least(q, colors, [MOST_TIES])
    return text, {v: f"x{i}" for i, v in enumerate(order)}


def _role(v: str, q: Query) -> str:
    return ("i" if v in inputs(q) else "") + ("o" if v in outputs(q) else "")


def _least(q: Query, colors: dict[str, str], budget: list[int]) -> tuple[str, tuple[str, ...]]:
    """The least text over the ways to break ties between equally coloured variables, as many as ``budget`` allows."""
    classes: dict[str, list[str]] = {}
    for v in sorted(colors):
        classes.setdefault(colors[v], []).append(v)
    tied = next((members for _, members in sorted(classes.items()) if len(members) > 1), None)
    if tied is None:
        order = tuple(sorted(colors, key=lambda v: colors[v]))
        return show(q, {v: f"x{i}" for i, v in enumerate(order)}), order
    tried: list[tuple[str, tuple[str, ...]]] = []
    for v in tied:
        if tried and budget[0] <= 0:
            break
        budget[0] -= 1
        tried.append(_least(q, refine(q, {**colors, v: colors[v] + "!"}), budget))
    return min(tried)


def refine(q: Query, colors: dict[str, str]) -> dict[str, str]:
    """Recolour by occurrences until the number of colours no longer grows, or cannot grow further."""
    places: list[tuple[str, tuple[str, ...]]] = []
    _leaves(q, "", places)
    while True:
        seen: dict[str, list[str]] = {v: [] for v in colors}
        for context, names in places:
            place = _digest(f"{context}({' '.join(colors[n] for n in names)})")
            for i, n in enumerate(names):
                seen[n].append(f"{place}#{i}")
        signatures = {v: (colors[v], tuple(sorted(seen[v]))) for v in colors}
        ranks = {s: f"{i:03d}" for i, s in enumerate(sorted(set(signatures.values())))}
        if len(ranks) in (len(colors), len(set(colors.values()))):
            return {v: ranks[signatures[v]] for v in colors}
        colors = {v: ranks[signatures[v]] for v in colors}


def _digest(text: str) -> str:
    """A short name for a text: a place with n variables is not to be written out n times."""
    return sha1(text.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()


def _leaves(q: Query, path: str, into: list[tuple[str, tuple[str, ...]]]) -> None:
    """Every place where variables meet: what kind of place, under which operators, and the variables in order."""
    match q:
        case Rel(name, names) | Delta(name, names):
            into.append((f"{path}{type(q).__name__} {name}", names))
        case View(name, ins, outs):
            into.append((f"{path}View {name}", ins + outs))
        case Value(term):
            into.append((f"{path}{_term_shape(term)}", _term_variables(term)))
        case Compare(op, left, right):
            shape = f"{path}{_term_shape(left)}{op}{_term_shape(right)}"
            into.append((shape, _term_variables(left) + _term_variables(right)))
        case Bind(var, inner):
            into.append((f"{path}:=", (var,)))
            _leaves(inner, f"{path}:=/", into)
        case Sum(group, inner):
            into.extend((f"{path}Sum", (v,)) for v in group)
            _leaves(inner, f"{path}Sum{len(group)}/", into)
        case _:
            for child in children(q):
                _leaves(child, f"{path}{type(q).__name__[0]}/", into)


def _term_variables(term: Term) -> tuple[str, ...]:
    match term:
        case Const():
            return ()
        case Var(name):
            return (name,)
        case Op(_, args):
            return tuple(v for a in args for v in _term_variables(a))


def _term_shape(term: Term) -> str:
    match term:
        case Const():
            return term.text
        case Var():
            return "?"
        case Op(name, args):
            return f"{name}({','.join(map(_term_shape, args))})"


def show(q: Query, label: Colors) -> str:
    """The text of Q under ``label``, with factors and branches sorted by that text."""
    match q:
        case Rel(name, names) | Delta(name, names):
            return f"{type(q).__name__} {name}({','.join(label[n] for n in names)})"
        case View(name, ins, outs):
            return f"{name}[{','.join(label[n] for n in ins)}][{','.join(label[n] for n in outs)}]"
        case Value(term):
            return "{" + _show_term(term, label) + "}"
        case Compare(op, left, right):
            return f"[{_show_term(left, label)}{op}{_show_term(right, label)}]"
        case Bind(var, inner):
            return f"({label[var]}:={show(inner, label)})"
        case Sum(group, inner):
            return f"Sum[{','.join(sorted(label[v] for v in group))}]({show(inner, label)})"
        case Join(parts):
            return "*".join(sorted(show(p, label) for p in parts))
        case Union(parts):
            return "(" + "+".join(sorted(show(p, label) for p in parts)) + ")"
        case Exists(inner) | Materialize(inner):
            return f"{type(q).__name__}({show(inner, label)})"


def _show_term(term: Term, label: Colors) -> str:
    match term:
        case Const():
            return term.text
        case Var(name):
            return label[name]
        case Op(name, args):
            return f"{name}({','.join(_show_term(a, label) for a in args)})"
