"""From a trigger to the loop nests that both emitters write out: one order of passes for all who ask.

::

    statement ──lower──▶ block ──BLOCK_PASSES──▶ block, a turn of its own ──PLAN_PASSES──▶ plan

The cost classes and the cost model look at one statement, and stop before PLAN_PASSES. ``explain --stage loops`` shows
plans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from viewlet.algebra.query import Query, Value, View, atoms, join, negate
from viewlet.algebra.terms import Var
from viewlet.loops.counted import CountOf, counts_of, through_counts
from viewlet.loops.fuse import Turn, fuse
from viewlet.loops.hoist import StoreOf, hoist
from viewlet.loops.invariant import outside_loops
from viewlet.loops.lower import Lowering, Scope
from viewlet.loops.names import each_name_once
from viewlet.loops.steps import Block
from viewlet.loops.verify import verify_plan
from viewlet.program.trigger import Event, MapDefinition, Program, Statement, Trigger
from viewlet.schema import CLOCK

SIGN = "$sign"  # 1 for an insert and -1 for a delete, where one function does both

BLOCK_PASSES: tuple[Callable[[Block], Block], ...] = (
    each_name_once,  # first: a step may then be moved without meeting another of its name
    outside_loops,  # before fuse, which looks for statements that begin alike: a read that stands in front is found
)


@dataclass(frozen=True)
class Plan:
    """What a trigger does: ``first`` the totals that several turns need, then the turns.

    ``given`` are the names that have a value at the start; ``place`` says which store a map is in, ``counts`` which map
    of the same store counts the rows of a sum.
    """

    turns: tuple[Turn, ...]
    first: Block = ()
    given: frozenset[str] = frozenset()
    place: StoreOf = str
    counts: CountOf = field(default_factory=dict)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (self.first, *(turn.block for turn in self.turns))


def counted(before: Plan) -> Plan:
    return replace(before, turns=through_counts(before.turns, before.counts))


def fused(before: Plan) -> Plan:
    return replace(before, turns=fuse(before.turns))


def hoisted(before: Plan) -> Plan:
    first, turns = hoist(before.turns, before.given, before.place)
    return replace(before, first=first, turns=turns)


PLAN_PASSES: tuple[Callable[[Plan], Plan], ...] = (
    counted,  # before fused, which makes one loop of two over the same count
    fused,  # before hoisted: totals that stand in one turn from now on are needed there only
    hoisted,  # last: it puts steps before all turns, where nothing could be fused with them
)


def plan(program: Program, trigger: Trigger, lowering: Lowering, *, signed: bool = False, place: StoreOf = str) -> Plan:
    """All passes. ``signed``: every change is multiplied by SIGN; ``place``: the store that a map is in."""
    given = frozenset(trigger.event.params) | (frozenset({SIGN}) if signed else frozenset())
    turns = turns_of(program, trigger, lowering, signed=signed)
    plan_ = Plan(turns, (), given, place, {} if place is str else counts_of(program, place))
    for each in PLAN_PASSES:
        plan_ = each(plan_)
    verify_plan(plan_, given, {v.name: len(v.outputs) for v in program.views}, f"the loops on {trigger.event}")
    return plan_


def turns_of(program: Program, trigger: Trigger, lowering: Lowering, *, signed: bool = False) -> tuple[Turn, ...]:
    """Each statement as a turn of its own."""
    return tuple(_turn(program, trigger.event, s, lowering, signed) for s in trigger.statements)


def statement_block(program: Program, event: Event, statement: Statement, lowering: Lowering) -> Block:
    """One statement by itself."""
    scope = _scope(program, event, statement)
    return finished(lowering.change(statement.expression, statement.target.outputs, scope, statement.target.name))


def fill_block(view: MapDefinition, lowering: Lowering) -> Block:
    """What a view cache computes for an input that it does not hold."""
    assert view.fill is not None, f"{view.name} has inputs and nothing to fill them from"
    given = Scope(frozenset(view.inputs), frozenset())
    return finished(lowering.change(view.fill, view.outputs, given, view.name))


def finished(block: Block) -> Block:
    """The block after all passes that look at one block."""
    for each in BLOCK_PASSES:
        block = each(block)
    return block


def _turn(program: Program, event: Event, statement: Statement, lowering: Lowering, signed: bool) -> Turn:
    expression, scope = statement.expression, _scope(program, event, statement)
    if signed and not statement.reads_new:
        expression = join(expression, Value(Var(SIGN)))
        scope = scope.having(frozenset({SIGN}), frozenset({SIGN}))
    block = lowering.change(expression, statement.target.outputs, scope, statement.target.name)
    reads, target = _reads(expression, program), program.view(statement.target.name)
    collect = statement.buffered or statement.op == ":=" or target.is_cache or target.name in reads
    return Turn((statement,), finished(block), collect, reads)


def _scope(program: Program, event: Event, statement: Statement) -> Scope:
    """What is bound where a statement starts: the event's row, and the inputs of the view cache it refreshes."""
    columns = program.relation(event.relation).columns if event.params else ()
    solid = [p for p, c in zip(event.params, columns, strict=True) if not c.nullable]
    bound = frozenset(event.params) | frozenset(statement.target.inputs)
    return Scope(bound, frozenset(solid), by_rows=event.relation == CLOCK.name and statement.op == "+=")


def _reads(q: Query, program: Program) -> frozenset[str]:
    """The maps that a query reads, and those that fill the view caches among them."""
    reads: frozenset[str] = frozenset()
    new = frozenset(a.name for a in atoms(q) if isinstance(a, View))
    while new:
        reads |= new
        fills = (program.view(name).fill for name in new)
        new = frozenset(a.name for fill in fills if fill for a in atoms(fill) if isinstance(a, View)) - reads
    return reads


def differ_in_sign(insert: Trigger, delete: Trigger) -> bool:
    """Deleting does the opposite of inserting: every increment is linear, and what is replaced is computed alike."""
    return (
        insert.event.params == delete.event.params
        and len(insert.statements) == len(delete.statements)
        and all(
            (a.target, a.op, a.buffered, a.late) == (b.target, b.op, b.buffered, b.late)
            and b.expression == (a.expression if a.reads_new else negate(a.expression))
            for a, b in zip(insert.statements, delete.statements, strict=True)
        )
    )
