"""Functions that read the rows of a SQL view in its order; where a read takes the first only, the order is kept.

``stand_…`` says where the row of a key stands, ``put_…`` writes it, ``mark_…`` is told before it changes. ``read_…``
brings the order up to date and walks it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from viewlet.engines.native.emit.declare import flag, struct
from viewlet.engines.native.emit.held import is_computed
from viewlet.engines.native.emit.identifiers import capital, named, plain
from viewlet.engines.native.emit.layout import Field, index_slices
from viewlet.engines.native.emit.lines import Code, function, plain_code
from viewlet.engines.native.emit.nest import Nest
from viewlet.engines.native.emit.results import (
    each_row,
    given_key,
    is_one_pass,
    key_of_rows,
    key_variables,
    maps_of,
    put_columns,
    row_block,
    weight,
)
from viewlet.engines.native.emit.triggers import Triggers
from viewlet.engines.native.emit.values import Scope
from viewlet.loops.steps import Emit
from viewlet.program.kinds import DOUBLE, NULL, TEXT, Inexact, Kind, Unfit
from viewlet.program.trigger import Order, Result

HEADER = "ranking"
Row = Callable[[Nest, Emit, Scope], None]


@dataclass(frozen=True)
class Ranked:
    """A result with an order; ``rank`` is the C++ type of all that a row is ordered by."""

    triggers: Triggers
    result: Result
    rank: str
    holds: bool  # texts that only the ranks have
    stand: Code
    put: Code

    @staticmethod
    def of(triggers: Triggers, result: Result) -> Ranked | None:
        """None where rows are more than the entries of one view, or a column is no cell."""
        if not result.order or not is_one_pass(result):
            return None
        index_slices(triggers.layout, row_block(triggers, result, key_variables(result)))
        try:
            return Ranked(triggers, result, *_stand(triggers, result), _put(triggers, result))
        except Unfit:
            return None

    @property
    def is_kept(self) -> bool:
        """A read of all rows sorts them; one of the first must not."""
        return self.result.limit is not None

    @property
    def name(self) -> str:
        return plain(self.result.name)

    @property
    def member(self) -> str:
        key, texts = key_of_rows(self.triggers, self.result), "{texts}" if self.holds else ""
        return f"Ranking<{key}, {_rank_name(self.result)}> ranked_{self.name}{texts};"

    @property
    def functions(self) -> list[Code]:
        key = key_of_rows(self.triggers, self.result)
        given, standing = f"[[maybe_unused]] const {key}& given", f"Standing<{_rank_name(self.result)}>& standing"
        functions = [
            function(f"VIEWLET_COLD void stand_{self.name}({given}, {standing})", self.stand),
            function(f"VIEWLET_COLD void put_{self.name}({given}, const i64 times, Rows& out)", self.put),
        ]
        if self.is_kept:
            mark = plain_code(f"ranked_{self.name}.mark(key);")
            functions.append(function(f"VIEWLET_COLD void mark_{self.name}(const {key}& key)", mark))
        return functions

    def reader(self) -> Code:
        """The body of ``read_…``."""
        ranked, limit = f"ranked_{self.name}", "~0ull" if self.result.limit is None else f"{self.result.limit}ull"
        rows = each_row(self.triggers, self.result, lambda key: f"{ranked}.add({key});")
        lines = [
            *(f"    {named('order', map_.name)}();" for map_ in maps_of(self.triggers, self.result) if map_.orders),
            f"    if (!{ranked}.is_kept) {{",
            *(f"    {line}" for line in rows),
            "    }",
            f"    {ranked}.is_kept = true;",
            f"    const auto stand = [&](const auto& key, auto& standing) {{ stand_{self.name}(key, standing); }};",
            f"    const auto put = [&](const auto& key, i64 times) {{ put_{self.name}(key, times, out); }};",
            f"    {ranked}.update(texts, out, stand);",
            f"    if (faults.any) return {ranked}.forget();",
            f"    {ranked}.first(out.wanted({limit}), {self.result.offset}ull, put);",
            "    unmark_all();" if self.is_kept else f"    {ranked}.forget();",
        ]
        return Code(tuple(lines))


def _rank_name(result: Result) -> str:
    return f"{capital(plain(result.name))}Rank"


def _stand(triggers: Triggers, result: Result) -> tuple[str, bool, Code]:
    """The type of ranks, whether they hold texts, and the body of ``stand_…``."""
    terms, fields = triggers.terms, dict[Order, Field]()

    def row(nest: Nest, step: Emit, scope: Scope) -> None:
        nest.out.add(f"standing.times = {'1' if result.distinct else weight(terms, step, scope)};")
        for order in result.order:
            value = terms.term(order.term, scope, False)
            if value.kind == NULL:  # of all rows
                continue
            held = terms.held(terms.bounded(value), _rank_kind(value.kind), value.optional)
            fields[order] = Field(f"by_{len(fields)}", held.kind, held.optional)
            nest.out.add(f"standing.rank.{fields[order].name} = {held.text};")

    code = _of_one(triggers, result, {"standing"}, row)
    held = [f for order, f in fields.items() if f.kind == TEXT and is_computed(order.term) and result.limit is not None]
    return _rank(result, fields, held), bool(held), code


def _put(triggers: Triggers, result: Result) -> Code:
    def row(nest: Nest, _: Emit, scope: Scope) -> None:
        put_columns(nest, triggers.terms, result, scope)
        nest.out.add("out.weight(times);")
        nest.out.add("out.end();")

    return _of_one(triggers, result, {"out", "times"}, row)


def _of_one(triggers: Triggers, result: Result, names: set[str], then: Row) -> Code:
    """A body that reads the row whose key is ``given``, where there is one."""
    nest, terms = triggers.nest(), triggers.terms
    nest.context.names |= names | {"given"}

    def row(steps: list[Emit], scope: Scope, _: object) -> None:
        condition = "" if result.having is None else f"if (holds({terms.term(result.having, scope, False).text}))"
        with nest.out.inside(condition):
            then(nest, steps[0], scope)

    nest.statement(row_block(triggers, result, key_variables(result)), given_key(triggers, result), row)
    return nest.code()


def _rank_kind(kind: Kind) -> Kind:
    return DOUBLE if isinstance(kind, Inexact) else kind


def _flags(order: Order) -> str:
    return f"{flag(order.descending)}, {flag(order.nulls_first)}"


def _rank(result: Result, fields: dict[Order, Field], held: list[Field]) -> str:
    """What a row is ordered by: two are compared term by term."""
    name = _rank_name(result)
    compared = [
        f"    if (int c = ranked<{_flags(order)}>(texts, a.{f.name}, b.{f.name})) return c < 0;"
        for order, f in fields.items()
    ]
    return "\n".join(
        [
            struct(name, fields.values(), f"what {result.name} is ordered by", held),
            f"inline bool precedes([[maybe_unused]] const Texts& texts, const {name}& a, const {name}& b) {{",
            *compared,
            "    return false;",
            "}",
            "",
        ]
    )
