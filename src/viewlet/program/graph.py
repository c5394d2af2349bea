"""Who maintains whom: streams and tables feed views, views are read to refresh other views, results show views.

The graph is plain data: a terminal prints it, graphviz draws it, a console takes it as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Literal

from viewlet.algebra.query import Query, View, children, relations
from viewlet.errors import Error
from viewlet.program.trigger import Program, Result, ViewDefinition
from viewlet.schema import Relation

Layer = Literal["relation", "view", "result"]
NodeKind = Literal["stream", "table", "result", "auxiliary", "cache", "static", "rows", "one row"]
EdgeKind = Literal["maintains", "loads", "reads", "fills", "shows"]

SHAPES: dict[Layer, str] = {"relation": "cylinder", "view": "box", "result": "note"}


@dataclass(frozen=True, slots=True)
class Node:
    """``id`` is ``layer:name``: a SQL view and the map behind it may have the same name.

    ``kind`` of a view: ``result`` (a result shows it), ``auxiliary``, ``cache``, or ``static`` (never changes).
    """

    id: str
    layer: Layer
    name: str
    kind: NodeKind
    text: str


@dataclass(frozen=True, slots=True)
class Edge:
    """``event`` and ``op`` of the statement behind it: the relation's change refreshes, or the refresh reads."""

    source: str
    target: str
    kind: EdgeKind
    event: str = ""
    op: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def to_dict(self) -> dict[str, list[dict[str, str]]]:
        return {"nodes": [asdict(n) for n in self.nodes], "edges": [asdict(e) for e in self.edges]}

    def to_text(self) -> str:
        """A tree under each result: its views, and under each view what its refresh reads. A view is opened once."""
        opened = set[str]()
        return "\n".join(
            line
            for node in self.nodes
            if node.layer == "result"
            for line in (f"{node.name} ({node.kind})", *self._tree(node.id, 1, opened))
        )

    def to_dot(self) -> str:
        lines = [f"  {_quote(n.id)} [label={_quote(n.text)}, shape={SHAPES[n.layer]}];" for n in self.nodes]
        for source, target in dict.fromkeys((e.source, e.target) for e in self.edges):
            label = self._label([e for e in self.edges if (e.source, e.target) == (source, target)])
            lines.append(f"  {_quote(source)} -> {_quote(target)} [label={_quote(label)}];")
        return "\n".join(["digraph viewlet {", "  rankdir=LR;", *lines, "}"])

    def _tree(self, target: str, depth: int, opened: set[str]) -> Iterator[str]:
        for source in dict.fromkeys(e.source for e in self.edges if e.target == target):
            node = next(n for n in self.nodes if n.id == source)
            if node.layer == "relation" or source == target:
                continue
            again = source in opened and any(e.target == source and e.source.startswith("view:") for e in self.edges)
            yield f"{'  ' * depth}{node.text} ({node.kind}) {self._refreshed(source)}{' (reads as above)' * again}"
            if source not in opened:
                opened.add(source)
                yield from self._tree(source, depth + 1, opened)

    def _refreshed(self, view: str) -> str:
        """``+= on +bids, -bids, Δbids; := on +asks``"""
        maintained = [e for e in self.edges if e.target == view and e.kind in ("maintains", "loads")]
        return self._label(maintained) or "never changes"

    def _label(self, edges: list[Edge]) -> str:
        events: dict[str, list[str]] = {}
        for e in edges:
            events.setdefault(e.op or e.kind, []).append(e.event)
        return "; ".join(f"{what} on {', '.join(on)}" if any(on) else what for what, on in events.items())


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


def _view_kind(view: ViewDefinition, program: Program) -> NodeKind:
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


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


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
    needed = _needed(program, result)
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
        results=(result,),
    )


def _needed(program: Program, result: Result) -> frozenset[str]:
    fresh, needed = set(views_shown(result)), set[str]()
    while fresh:
        name = fresh.pop()
        needed.add(name)
        view = program.view(name)
        reads = [s.expression for t in program.triggers for s in t.statements if s.target.name == name]
        for q in (*reads, *((view.fill,) if view.fill is not None else ())):
            fresh |= set(views_in(q)) - needed
    return frozenset(needed)
