"""How a view is kept fresh, told from the SQL to the cost of every statement.

The story has four stages: the query in the calculus (§3.1), its deltas (§3.2), what was decided to be kept (§5.1), and
the trigger program (§4). Each is text; the compiler's record (``program.trace``) says which rules led to the next.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from viewlet.algebra.query import Query, View
from viewlet.algebra.rewrite import Step
from viewlet.algebra.terms import string
from viewlet.algebra.text import pretty
from viewlet.engines.native.emit.layout import MapLayout, OrderLayout
from viewlet.engines.native.emit.program import cpp_source, native
from viewlet.engines.native.emit.sizes import SLOT_BYTES, entry_bytes, order_bytes, slice_bytes
from viewlet.errors import Error
from viewlet.loops.cost_class import program_cost_class, scan_warnings, statement_access, tick_cost_class
from viewlet.loops.lower import Lowering
from viewlet.loops.pipeline import plan
from viewlet.loops.text import show_block
from viewlet.program.graph import graph, part_for, views_in
from viewlet.program.kinds import Unfit
from viewlet.program.limits import is_product
from viewlet.program.nodes import Graph
from viewlet.program.text import EVENTS, order_to_text, statement_to_text
from viewlet.program.trigger import MapDefinition, Program, Result, Statement, Trigger

STAGES = MappingProxyType(
    {
        "algebra": "the query in the calculus",
        "delta": "how each view changes when a table changes",
        "decision": "the views kept, why, and the rules that led there",
        "program": "the triggers, and what each statement costs",
    }
)
LOOPS, CPP = "loops", "cpp"  # stages that are long, and shown when asked for: loop nests, and the native engine's C++
WIDTH = 100
STYLE = """\
.viewlet-explain { color-scheme: light dark; font-size: 0.9em }
.viewlet-explain summary { cursor: pointer; font-weight: bold; padding: 0.2em 0 }
.viewlet-explain pre { background: rgba(128, 128, 128, 0.12); padding: 0.6em; overflow-x: auto; color: inherit }
.viewlet-explain .warning { border-left: 0.25em solid #d97706; padding-left: 0.6em; margin: 0.3em 0 }
"""


@dataclass(frozen=True)
class Explanation:
    """How views are kept fresh, made by :meth:`Database.explain`. ``str()`` tells everything; the fields are its parts.

    ``cost_class`` is the worst that an insert or delete can cost. ``warnings`` name every scan. ``memory`` estimates
    the bytes of each map. ``trace`` holds the compiler's rewrites. ``graph`` says which maps are kept for which.
    """

    title: str
    sql: str
    stages: Mapping[str, str]
    trace: list[Step]
    cost_class: str
    warnings: tuple[str, ...]
    graph: Graph
    statistics: str
    memory: str
    program: Program = field(repr=False)
    threads: str = ""

    def stage(self, name: str) -> str:
        """One stage as text: ``"algebra"``, ``"delta"``, ``"decision"``, ``"program"``, ``"loops"`` or ``"cpp"``."""
        if name in ON_REQUEST:
            return ON_REQUEST[name](self.program)
        if name not in self.stages:
            raise Error(f"no stage {name!r}: the stages are {', '.join([*self.stages, *ON_REQUEST])}")
        return self.stages[name]

    def sections(self) -> Iterator[tuple[str, str]]:
        """The parts of the text, each with its heading."""
        if self.sql:
            yield "SQL", self.sql
        for name, text in self.stages.items():
            yield f"{name}: {STAGES[name]}", text
        if self.statistics:
            yield "estimate", self.statistics
        yield "memory: the maps of the native engine", self.memory
        if self.threads:
            yield "threads: the cells of this process", self.threads
        yield "graph: under each view, the views that its refresh reads", self.graph.to_text()

    def to_dict(self) -> dict[str, object]:
        """All of it as plain values, for JSON."""
        return {
            "title": self.title,
            "sql": self.sql,
            "cost_class": self.cost_class,
            "warnings": list(self.warnings),
            "stages": dict(self.stages),
            "statistics": self.statistics,
            "memory": self.memory,
            "threads": self.threads,
            "trace": [step.to_dict() for step in self.trace],
            "graph": self.graph.to_dict(),
        }

    def __str__(self) -> str:
        blocks = [self.title, *(f"── {heading} ──\n{text}" for heading, text in self.sections())]
        return "\n\n".join([*blocks, "\n".join(f"warning: {w}" for w in self.warnings)]).rstrip()

    def _repr_html_(self) -> str:
        warnings = "".join(f'<p class="warning">{html.escape(w)}</p>' for w in self.warnings)
        sections = "".join(
            f"<details><summary>{html.escape(heading)}</summary><pre>{html.escape(text)}</pre></details>"
            for heading, text in self.sections()
        )
        title = f"<p><b>{html.escape(self.title)}</b></p>"
        return f'<div class="viewlet-explain"><style>{STYLE}</style>{title}{warnings}{sections}</div>'


def explain(program: Program, view: str | None = None, *, trace: bool = False, threads: str = "") -> Explanation:
    """How the views of a program, or one of them, are kept fresh; ``trace`` adds every step of the compiler.

    ``threads`` says how the rows are divided among several.
    """
    part = program if view is None else part_for(program, view)
    steps = _steps(part)
    decision = _decision(part, steps) + ("\n\n" + _trace(steps) if trace and steps else "")
    stages = {"algebra": _algebra(part), "delta": _deltas(part), "decision": decision, "program": _triggers(part)}
    worst = program_cost_class(part, kinds="+-")
    return Explanation(
        title=_title(part),
        sql="\n\n".join(f"{r.sql};" for r in part.results if r.sql),
        stages=MappingProxyType(stages),
        trace=steps,
        cost_class=worst,
        warnings=scan_warnings(part),
        graph=graph(part),
        statistics=_statistics(program),
        memory=_memory(part),
        program=part,
        threads=threads,
    )


def _title(program: Program) -> str:
    names = ", ".join(r.name for r in program.results) or "no views"
    kept = f"{len(program.views)} view{'s' * (len(program.views) != 1)} kept"
    event, batch = (program_cost_class(program, kinds=kinds) for kinds in ("+-", "Δ"))
    tick = tick_cost_class(program)
    costs = f"an insert or delete costs {event}" + f", a batch {batch}" * (batch != event)
    costs += f", a tick of the clock {tick}" * (tick is not None)
    return f"{names}: {kept}, {costs} (strategy {program.strategy}, dialect {program.dialect})"


def _statistics(program: Program) -> str:
    if not program.statistics:
        return ""
    costs = ", ".join(f"{name} {program.statistics[name]:,.1f}" for name in ("maintenance", "refresh", "total"))
    whole = "all views of the script, " if len(program.results) > 1 else ""
    return f"{whole}values touched a second at the declared rates and sizes (§5.1): {costs}"


# -- loop nests --------------------------------------------------------------------------------------------------------


def _loops(program: Program) -> str:
    """What each trigger does, step by step, after all passes; a batch does it for each of its rows where it can."""
    lowering = Lowering.of(program)
    return "\n\n".join(_plan_text(program, trigger, lowering) for trigger in program.triggers) or "no triggers"


def _plan_text(program: Program, trigger: Trigger, lowering: Lowering) -> str:
    plan_ = plan(program, trigger, lowering)
    lines = [f"on {trigger.event} {{"]
    if plan_.first:
        lines += ["  -- what several statements need", show_block(plan_.first, 1)]
    for turn in plan_.turns:
        names = ", ".join(statement.target.name for statement in turn.statements)
        lines += [f"  -- {names}{': collected before it is applied' * turn.collect}", show_block(turn.block, 1)]
    return "\n".join([*lines, "}"])


# -- the native engine -------------------------------------------------------------------------------------------------


def _cpp(program: Program) -> str:
    try:
        return cpp_source(program)
    except Unfit as unfit:
        return _unfit(unfit)


def _memory(program: Program) -> str:
    """Every map with the views it holds and the bytes that an entry takes."""
    try:
        maps = native(program).layout.maps
    except Unfit as unfit:
        return _unfit(unfit)
    return "\n".join(line for map_ in maps for line in _map_lines(map_, program)) or "no maps"


def _map_lines(map_: MapLayout, program: Program) -> Iterator[str]:
    views = ", ".join(m.view for m in map_.members)
    if map_.is_single:
        yield f"{map_.shown}: {views}: one entry of {entry_bytes(map_)} bytes"
        return
    first = program.view(map_.members[0].view)
    names = first.inputs + first.outputs
    tables = SLOT_BYTES * (1 + len(map_.indexes))
    yield f"{map_.shown}[{', '.join(names)}]: {views}"
    indexes = [f"({', '.join(names[i] for i in positions)})" for positions in map_.indexes]
    sliced = f", sliced by {', '.join(indexes)}" if indexes else ""
    yield f"  {entry_bytes(map_)} bytes a group and about {tables} for finding it{sliced}"
    for (_, _, member), order in map_.orders.items():
        yield f"  {_order_text(map_, order, member, names)}"


def _order_text(map_: MapLayout, order: OrderLayout, member: str, names: tuple[str, ...]) -> str:
    """``member``: the one view whose entries are in order, where not all of the map are."""
    only = "".join(f"{m.view} alone " for m in map_.members if m.name == member and len(map_.members) > 1)
    text = f"{only}in order of {names[order.key_at]}"
    each = f"about {order_bytes(map_, order)} bytes a group"
    if not order.slice_at:
        return f"{text}: {each}"
    slices = ", ".join(names[i] for i in order.slice_at)
    return f"{text}, for each ({slices}): {each} and {slice_bytes(map_, order)} for each tree"


def _unfit(unfit: Unfit) -> str:
    return f"no native code: {unfit}; generated Python keeps this fresh, exactly"


# -- algebra -----------------------------------------------------------------------------------------------------------


def _algebra(program: Program) -> str:
    return "\n\n".join("\n".join(_result_lines(r, program)) for r in program.results)


def read_cost(result: Result) -> str:
    """The class of a read; only machine code keeps an order from read to read."""
    sorted_ = "O(n log n), since all rows are sorted"
    is_kept = result.limit is not None and (result.rows is None or isinstance(result.rows, View))
    return "O(log n) for each row that it shows or that changed, in generated Python O(n)" if is_kept else sorted_


def _result_lines(result: Result, program: Program) -> Iterator[str]:
    yield f"{result.name}: " + ("one row" if result.rows is None else "a row for each key of")
    if result.rows is not None:
        yield f"  {_defined(result.rows, program, 2)}"
    for name, q in result.lookups:
        yield f"  {name} := {_defined(q, program, 6 + len(name))}"
        if is_product(q):
            yield "    multiplied when a row is read: no trigger keeps it"
        elif not isinstance(q, View):
            yield "    found when a row is read: O(log n) where it is a range of one key, else the rows that agree"
    for e in result.extremes:
        place = "" if e.place is None else f" at {e.place.text}"
        yield f"  {e.var} := {e.end} {e.key}{place} of {_defined(e.query, program, 6 + len(e.var))}"
        if e.place is not None:
            yield "    a read goes down the tree by counts: O(log n) a row, in generated Python O(n) for all"
    for g in result.gathers:
        joined = "a list" if g.separator is None else f"a text with {string(g.separator).text} between"
        words = f"{joined} of {'the distinct ' * g.distinct}{g.term.text}"
        order = ", ".join(map(order_to_text, g.order))
        yield f"  {g.var} := {words} in {order} of {_defined(g.query, program, 6 + len(g.var))}"
        yield "    a read sorts it: O(n log n) for the rows of the view together, and no order is kept"
    if result.having is not None:
        yield f"  having {result.having.text}"
    yield from (f"  {order_to_text(o)}" for o in result.order)
    for w in result.windows:
        yield f"  {w.var} := {w.function} of ({', '.join(term.text for term in w.arguments)})"
        yield "    rows are numbered when they are read: O(n log n) for all rows, on every engine in Python"
    if result.limit is not None or result.offset:
        first = "all rows" if result.limit is None else f"the first {result.limit} rows"
        yield f"  {first} after {result.offset}: a read costs {read_cost(result)}"
    for column in result.columns:
        yield f"  column {column.name} {column.type} := {column.term.text}"


def _defined(q: Query, program: Program, indent: int) -> str:
    """A read of a map that is kept for the result, with the map's definition."""
    if not isinstance(q, View):
        return pretty(q, WIDTH, indent)
    return f"{q.text} where\n    {_definition(program.view(q.name), 6)}"


def _definition(view: MapDefinition, indent: int) -> str:
    start = f"{view.read.text} :="
    if indent + len(start) + len(view.definition.text) < WIDTH:
        return f"{start} {view.definition.text}"
    return f"{start}\n{' ' * indent}{pretty(view.definition, WIDTH, indent)}"


# -- delta -------------------------------------------------------------------------------------------------------------


def _deltas(program: Program) -> str:
    note = "Where only the delta of an insert is given: a delete is −1 times it, a batch is it for each tuple.\n"
    if program.triggers and not program.trace.deltas and not program.trace.steps:
        return "the program was read from text, which keeps no record of deltas"
    lines = [line for view in program.views for line in _view_deltas(view, program)]
    return "\n".join([note, *lines]) if lines else "nothing changes"


def _view_deltas(view: MapDefinition, program: Program) -> Iterator[str]:
    """The deltas that the compiler made into statements, read off its record. A re-evaluation has none."""
    statements = [(t.event, s) for t in program.triggers for s in t.statements if s.target.name == view.name]
    again = [f"{event.kind}{event.relation}" for event, s in statements if s.op == ":="]
    if again:
        yield f"{view.name} on {', '.join(again)}: evaluated again"
    groups = [f"{event.kind}{event.relation}" for event, s in statements if s.late]
    if groups:
        yield f"{view.name} on {', '.join(groups)}: the event's groups are evaluated again"
    for event, _ in statements:
        change = program.trace.deltas.get(f"{view.name} on {event}")
        if change is not None:
            yield f"Δ {view.name} on {event} ="
            yield f"  {pretty(change, WIDTH, 2)}"


# -- decision ----------------------------------------------------------------------------------------------------------


def _decision(program: Program, steps: list[Step]) -> str:
    views = "\n".join(line for view in program.views for line in _kept(view, program))
    return f"{views}\n\n{_rules(steps)}"


def _kept(view: MapDefinition, program: Program) -> Iterator[str]:
    yield _definition(view, 4)
    yield f"  why: {view.why}"
    if view.fill is not None:
        yield f"  on a miss: {pretty(view.fill, WIDTH, 13)}"
    readers: dict[str, list[str]] = {}
    for trigger in program.triggers:
        for s in trigger.statements:
            if view.name in views_in(s.expression):
                readers.setdefault(s.target.name, []).append(f"{trigger.event.kind}{trigger.event.relation}")
    if readers:
        yield "  read by: " + "; ".join(f"{reader} on {', '.join(events)}" for reader, events in readers.items())


def _rules(steps: list[Step]) -> str:
    if not steps:
        return "no rule fired, or the program was read from text, which keeps no record"
    fired = Counter((step.rule, step.source) for step in steps)
    width = max(len(rule) for rule, _ in fired)
    lines = (f"  {n:4} × {rule:{width}}  {source}" for (rule, source), n in fired.items())
    return "\n".join(["rules that fired:", *lines])


def _steps(program: Program) -> list[Step]:
    """A step's place is ``view`` or ``view on event``."""
    names = {v.name for v in program.views}
    names |= {f"{r.name}_{name}" for r in program.results for name, _ in r.lookups} | {r.name for r in program.results}
    names |= {f"{r.name}_{e.var}" for r in program.results for e in r.extremes}
    names |= {f"{r.name}_{g.var}" for r in program.results for g in r.gathers}
    return [step for step in program.trace.steps if step.place.split(" on ")[0] in names]


def _trace(steps: list[Step]) -> str:
    lines, place = ["every step:"], ""
    for i, step in enumerate(steps, 1):
        if step.place != place:
            lines.append(f"  at {step.place}")
            place = step.place
        lines += [f"  {i:4} {step.rule}", f"         {step.before}", f"       ⇒ {step.after}"]
    return "\n".join(lines)


# -- program -----------------------------------------------------------------------------------------------------------


def _triggers(program: Program) -> str:
    return "\n\n".join("\n".join(_trigger_lines(t, program)) for t in program.triggers) or "no triggers"


def _trigger_lines(trigger: Trigger, program: Program) -> Iterator[str]:
    event = trigger.event
    values = f"({', '.join(event.params)})" if event.params else f"Δ{event.relation}"
    yield f"{EVENTS[event.kind]} {event.relation} values {values} do {{"
    for statement in trigger.statements:
        yield f"  {statement_to_text(statement, event.params, 2)};"
        yield from _cost_lines(statement, trigger, program)
    yield "}"


def _cost_lines(statement: Statement, trigger: Trigger, program: Program) -> Iterator[str]:
    cost = statement_access(statement, trigger.event, program)
    per = "" if cost.unit == "event" else f" per {cost.unit}"
    yield f"      -- {cost.cost_class}{per}: {cost.reason}"
    reads = dict.fromkeys(f"{path} {text}" for text, path in cost.paths if path != "batch")
    if len(reads) > 1:
        yield f"      -- reads: {', '.join(reads)}"


ON_REQUEST: Mapping[str, Callable[[Program], str]] = MappingProxyType({LOOPS: _loops, CPP: _cpp})
