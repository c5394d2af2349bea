"""Who maintains whom: streams and tables feed maps, maps are read to refresh other maps, results show maps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from viewlet.algebra.query import Query, View, children, relations
from viewlet.errors import Error
from viewlet.program.nodes import Edge, Graph, Node, NodeKind
from viewlet.program.trigger import MapDefinition, Program, Result
from viewlet.schema import Relation


def graph(program: Program) -> Graph:
    nodes = (
        *(Node(f"relation:{r.name}", "relation", r.name, _relation_kind(r), r.name) for r in program.relations),
        *(Node(f"view:{v.name}", "view", v.name, _view_kind(v, program), v.read.text) for v in program.views),
        *(Node(f"result:{r.name}", "result", r.name, _result_kind(r), r.name) for r in program.results),
    )
    return Graph(nodes, tuple(dict.fromkeys(_edges(program))))


def _relation_kind(relation: Relation) -> NodeKind:
    return "table" if relation.static else "stream"


def _result_kind(result: Result) -> NodeKind:
    return "one row" if result.rows is None else "rows"


def _view_kind(view: MapDefinition, program: Program) -> NodeKind:
    if any(view.name in views_shown(result) for result in program.results):
        return "result"
    if view.is_cache:
        return "cache"
    return "static" if all(program.relation(r).static for r in relations(view.definition)) else "auxiliary"


def _edges(program: Program) -> Iterator[Edge]:
    for view in program.views:
        for name in sorted(relations(view.definition)):
            if program.relation(name).static:
                yield Edge(f"relation:{name}", f"view:{view.name}", "loads", f"load of {name}")
        for read in views_in(view.fill) if view.fill is not None else ():
            yield Edge(f"view:{read}", f"view:{view.name}", "fills")
    for trigger in program.triggers:
        event = f"{trigger.event.kind}{trigger.event.relation}"
        for s in trigger.statements:
            target = f"view:{s.target.name}"
            yield Edge(f"relation:{trigger.event.relation}", target, "maintains", event, s.op)
            for read in views_in(s.expression):
                yield Edge(f"view:{read}", target, "reads", event, s.op)
    for result in program.results:
        for read in views_shown(result):
            yield Edge(f"view:{read}", f"result:{result.name}", "shows")


# -- what one result needs ---------------------------------------------------------------------------------------------


def views_in(q: Query) -> tuple[str, ...]:
    """The names of the views that Q reads, each once, in the order of the text."""
    own = (q.name,) if isinstance(q, View) else ()
    return tuple(dict.fromkeys((*own, *(name for child in children(q) for name in views_in(child)))))


def views_shown(result: Result) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for q in result.reads for name in views_in(q)))


def part_for(program: Program, name: str) -> Program:
    """Only what keeps one result fresh: the views it shows and, transitively, those read to refresh them."""
    result = next((r for r in program.results if r.name == name), None)
    if result is None:
        raise Error(f"there is no view {name}; there are: {', '.join(r.name for r in program.results) or 'none'}")
    return replace(part_of(program, views_shown(result)), results=(result,))


def part_of(program: Program, names: Iterable[str]) -> Program:
    """Only what keeps some maps fresh: themselves and, transitively, those read to refresh them. It shows no result."""
    needed = _needed(program, names)
    views = tuple(v for v in program.views if v.name in needed)
    used = frozenset().union(*(relations(v.definition) for v in views))
    triggers = tuple(
        replace(t, statements=tuple(s for s in t.statements if s.target.name in needed)) for t in program.triggers
    )
    return replace(
        program,
        relations=tuple(r for r in program.relations if r.name in used),
        views=views,
        triggers=tuple(t for t in triggers if t.statements),
        results=(),
    )


def _needed(program: Program, names: Iterable[str]) -> frozenset[str]:
    fresh, needed = set(names), set[str]()
    while fresh:
        name = fresh.pop()
        needed.add(name)
        view = program.view(name)
        reads = [s.expression for t in program.triggers for s in t.statements if s.target.name == name]
        for q in (*reads, *((view.fill,) if view.fill is not None else ())):
            fresh |= set(views_in(q)) - needed
    return frozenset(needed)
