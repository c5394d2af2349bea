"""A graph as plain data: a terminal prints it, graphviz draws it, a console takes it as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

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


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
