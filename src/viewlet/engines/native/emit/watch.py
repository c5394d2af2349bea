"""C++ that knows what changed: for each row of a SQL view and each entry of a map that is watched, what it was before.

Before an entry changes for the first time since somebody asked, ``note_…`` keeps its value, and the rows that are read
off it as they are then, by their keys. An answer compares these with what is there now, so its cost is that of the keys
noted. One entry may be read by many rows (a total that all rows are compared with): all of them are noted then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from viewlet.algebra.query import View
from viewlet.algebra.terms import Var
from viewlet.engines.native.emit.declare import flag, quoted, shown_column, struct, table
from viewlet.engines.native.emit.identifiers import capital, named, plain
from viewlet.engines.native.emit.keys import column, each_entry, whole_key
from viewlet.engines.native.emit.layout import Field, MapLayout, Member, index_slices
from viewlet.engines.native.emit.lines import Code, function, plain_code
from viewlet.engines.native.emit.ranked import Ranked
from viewlet.engines.native.emit.results import (
    cell,
    check_products,
    each_row,
    given_key,
    is_one_pass,
    key_of_rows,
    key_variables,
    maps_of,
    row_block,
    weight,
)
from viewlet.engines.native.emit.sources import Source, sources
from viewlet.engines.native.emit.triggers import Triggers
from viewlet.engines.native.emit.values import Scope, type_of, width
from viewlet.errors import Error
from viewlet.loops.steps import Emit
from viewlet.program.kinds import BOOLEAN, COUNT_BITS, DOUBLE, REAL, TEXT, Exact, Kind
from viewlet.program.trigger import Program, Result

WEIGHT = '{"weight", Sql::BIGINT, 0, 0, false}'
WHAT = "Watch what, Rows& out"


@dataclass(frozen=True)
class Watched:
    """What a program must tell the changes of: rows of SQL views, and entries of maps (views of it, but no caches).

    It is part of what is compiled: a program that watches nothing has no code for it. A host that watches must ask for
    the changes. Until then the program keeps them, and the texts in them.
    """

    results: tuple[str, ...] = ()
    views: tuple[str, ...] = ()

    def check(self, program: Program) -> None:
        views = {v.name for v in program.views if not v.is_cache}
        if missing := set(self.results) - {r.name for r in program.results} | set(self.views) - views:
            raise Error(f"{', '.join(sorted(missing))}: no view of the program, or a cache; there is nothing to watch")


UNWATCHED = Watched()


@dataclass
class Watching:
    """Writes what a program needs for being watched: ``types`` before its struct, the rest into it."""

    triggers: Triggers
    results: tuple[Result, ...]
    views: tuple[str, ...]
    ranked: tuple[Ranked, ...] = ()  # those whose order is kept
    types: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    functions: list[Code] = field(default_factory=list)
    infos: list[str] = field(default_factory=list)

    @property
    def includes(self) -> frozenset[str]:
        return frozenset({"watch"} if self.infos else ())

    @staticmethod
    def of(triggers: Triggers, watched: Watched, ranked: Iterable[Ranked]) -> Watching:
        """Planned: code that writes to a map must know that it is watched, and what is looked up gets its indexes.

        Results whose rows are more than one pass over one view, those that gather lists, and those that show the first
        rows only, are left out.
        """
        asked = [triggers.program.result(name) for name in watched.results]
        results = tuple(r for r in asked if is_one_pass(r) and not r.is_cut and not r.gathers)
        watching = Watching(triggers, results, watched.views, tuple(r for r in ranked if r.is_kept))
        for result in watching.results:
            index_slices(triggers.layout, row_block(triggers, result, key_variables(result)))
        read = (*watching.results, *(r.result for r in watching.ranked))
        for view in (*watched.views, *(source.view for r in read for source in sources(r))):
            noted, member = triggers.layout[view]
            noted.noted.add(member.name)
        return watching

    def write(self, readable: tuple[str, ...]) -> Watched:
        """What is watched in fact: of the results only those that have a reader."""
        self.results = tuple(r for r in self.results if r.name in readable)
        for result in self.results:
            self.write_result(result)
        for view in self.views:
            self.write_view(view)
        for map_ in self.triggers.layout.maps:
            self.write_notes(map_)
        if self.infos or self.ranked:
            self.write_marks()
        if self.infos:
            self.write_whole()
        return Watched(tuple(r.name for r in self.results), self.views)

    # -- rows ----------------------------------------------------------------------------------------------------------

    def write_result(self, result: Result) -> None:
        name, key, row = plain(result.name), key_of_rows(self.triggers, result), f"{capital(plain(result.name))}Shown"
        body, cells = self.shown(result)
        self.types.append(struct(row, [f for f in cells if f is not None], f"a row of {result.name}") + "\n")
        self.members.append(f"RowNotes<{key}, {row}, {flag(self.shows_key(result, cells))}> noted_rows_{name};")
        self.describe(result.name, [shown_column(c) for c in result.columns])
        show = f"[&](const {key}& key, Shown<{row}>& row) {{ show_{name}(key, row); }}"
        self.function(f"show_{name}", f"[[maybe_unused]] const {key}& given, Shown<{row}>& shown", body)
        self.function(f"keep_{name}", f"const {key}& key", plain_code(f"noted_rows_{name}.note(faults, key, {show});"))
        puts = [f"out.put({i + 1}, row.{f.name});" if f else f"out.null({i + 1});" for i, f in enumerate(cells)]
        lines = [
            *(f"    {named('order', map_.name)}();" for map_ in maps_of(self.triggers, result) if map_.orders),
            f"    const auto show = {show};",
            *_put(f"const {row}& row", puts),
            f"    if (what == Watch::CHANGES) return noted_rows_{name}.changes(out, show, put);",
            f"    if (what == Watch::FORGET) return noted_rows_{name}.before.clear();",
            *each_row(self.triggers, result, lambda key: f"noted_rows_{name}.standing({key}, show, put);"),
            f"    noted_rows_{name}.noted(put);",
        ]
        self.function(f"watch_rows_{name}", WHAT, Code(tuple(lines)))

    def shown(self, result: Result) -> tuple[Code, list[Field | None]]:
        """The body of ``show_…``, and the cells of a row; None where a column is always NULL."""
        nest, terms, cells = self.triggers.nest(), self.triggers.terms, dict[int, Field | None]()
        nest.context.names |= {"shown", "given"}

        def row(steps: list[Emit], scope: Scope, _: object) -> None:
            check_products(nest, terms, result, scope)
            condition = "" if result.having is None else f"if (holds({terms.term(result.having, scope, False).text}))"
            with nest.out.inside(condition):
                nest.out.add(f"shown.times = {'1' if result.distinct else weight(terms, steps[0], scope)};")
                for i, of_row in enumerate(result.columns):
                    value = cell(terms, terms.term(of_row.term, scope, False), of_row.type)
                    cells[i] = None if value is None else Field(f"cell_{i}", value.kind, value.optional)
                    if value is not None:
                        nest.out.add(f"shown.row.cell_{i} = {value.text};")

        given = given_key(self.triggers, result)
        nest.statement(row_block(self.triggers, result, key_variables(result)), given, row)
        return nest.code(), list(cells.values())

    def shows_key(self, result: Result, cells: list[Field | None]) -> bool:
        """Whether rows of two keys are never equal: each part of the key is a column, and none is rounded there."""
        shown = {
            c.term.text: f.kind for c, f in zip(result.columns, cells, strict=True) if f and isinstance(c.term, Var)
        }
        key = given_key(self.triggers, result)
        return all(v in shown and (shown[v] != DOUBLE or part.kind == DOUBLE) for v, part in key.items())

    # -- entries -------------------------------------------------------------------------------------------------------

    def write_view(self, view: str) -> None:
        map_, member = self.triggers.layout[view]
        key, type_, noted = _key_of(map_), _value_type(member), f"noted_values_{plain(view)}"
        self.members.append(f"EntryNotes<{key}, {type_}> {noted};")
        columns = [_column(f"k{i}", f.kind, True) for i, f in enumerate(map_.key)]
        self.describe(view, [*columns, _column("value", member.kind, False)])
        puts = [f"out.put({i + 1}, key.{f.name});" for i, f in enumerate(map_.key)]
        entry = f"&{map_.name}.only" if map_.is_single else f"{map_.name}.find(key)"
        standing = f"for (auto* entry : {map_.name}.all()) {noted}.standing(entry->key, value(entry), put);"
        if map_.is_single:
            standing = f"{noted}.standing(Keyless{{}}, value({entry}), put);"
        lines = [
            f"    const auto value = [](auto* entry) {{ return entry ? {_value('entry->', member)} : {type_}{{}}; }};",
            f"    const auto now = [&]([[maybe_unused]] const {key}& key) {{ return value({entry}); }};",
            *_put(f"[[maybe_unused]] const {key}& key, {type_} value", [*puts, f"out.put({len(puts) + 1}, value);"]),
            f"    if (what == Watch::CHANGES) return {noted}.changes(now, put);",
            f"    if (what == Watch::FORGET) return {noted}.before.clear();",
            f"    {standing}",
            f"    {noted}.noted(put);",
        ]
        self.function(f"watch_values_{plain(view)}", WHAT, Code(tuple(lines), 0 if map_.is_single else 1))

    # -- notes ---------------------------------------------------------------------------------------------------------

    def write_notes(self, map_: MapLayout) -> None:
        """The functions that are called before an entry changes; values without a key are told apart by member."""
        if map_.is_single:
            for member in [m for m in map_.members if m.name in map_.noted]:
                name = named(map_.name, member.name)
                self.members.append(f"bool marked_{name}{{}};")
                notes = self.notes(map_, [member], "Keyless{}", f"{map_.name}.only.")
                self.function(f"note_{name}", "", plain_code(f"marked_{name} = true;") + notes)
        elif map_.noted:
            ids = named("marked", map_.name)
            self.members.append(f"Ids {ids};")
            marked = plain_code("entry.head.noted = true;", f"{ids}.push(entry.head.id);")
            notes = self.notes(map_, list(map_.members), "entry.key", "entry.")
            self.function(named("note", map_.name), f"decltype({map_.name})::Entry& entry", marked + notes)

    def notes(self, map_: MapLayout, members: list[Member], key: str, entry: str) -> Code:
        views = {m.view: m for m in members}
        watched = [v for v in self.views if v in views]
        notes = plain_code(*(f"noted_values_{plain(v)}.note({key}, {_value(entry, views[v])});" for v in watched))
        told = [(r, f"keep_{plain(r.name)}") for r in self.results]
        told += [(r.result, f"mark_{r.name}") for r in self.ranked]
        for result, note in told:
            touched = [source for source in sources(result) if source.view in views]
            for rows in dict.fromkeys(self.rows_of(result, source, map_, note) for source in touched):
                notes += rows
        return notes

    def rows_of(self, result: Result, source: Source, map_: MapLayout, note: str) -> Code:
        """Note the rows that read an entry: those that agree with its key, as far as this is of their variables."""
        if not isinstance(result.rows, View) or self.triggers.layout[result.rows.name][0].is_single:
            return plain_code(f"{note}(Keyless{{}});")
        nest, names = self.triggers.nest(), result.rows.outputs
        target, member = self.triggers.layout[result.rows.name]
        scope = {v: column("entry.key", map_.key[i]) for v, i in source.shared.items()}
        positions = tuple(i for i, name in enumerate(names) if name in scope)
        with nest.lookups.representable(target, names, positions, scope) as key:
            if len(positions) == len(names):
                nest.out.add(f"{note}({whole_key(target, key)});")
            else:
                head = f"for ({each_entry(target, 'row', positions, key)})"
                with nest.out.inside(head, lookups=1 if positions else 0):
                    nest.out.add(f"if (!is_zero(row->values.{member.name})) {note}(row->key);")
        return nest.code()

    # -- the whole -----------------------------------------------------------------------------------------------------

    def write_whole(self) -> None:
        rows = [f"rows_{plain(r.name)}" for r in self.results]
        watched = [*rows, *(f"values_{plain(view)}" for view in self.views)]
        self.types += [*table("ResultInfo", "ALL_WATCHED", self.infos), ""]
        self.members.append("static constexpr const ResultInfo* WATCHED = ALL_WATCHED;")
        self.members.append(f"static constexpr u32 WATCHED_COUNT = {len(watched)};")
        calls = [f"if (index == {i}) watch_{name}(what, out);" for i, name in enumerate(watched)]
        forget = "if (what == Watch::FORGET) unmark_all();"
        self.function("watch", f"u32 index, {WHAT}", plain_code(*calls, forget))

    def write_marks(self) -> None:
        """A mark may go before what is noted is told: who notes a thing twice keeps the first."""
        unmarked = (line for m in self.triggers.layout.maps for line in _unmarked(m))
        self.function("unmark_all", "", plain_code(*unmarked))
        notes = [f"noted_rows_{plain(r.name)}.before.size()" for r in self.results]
        notes += [f"noted_values_{plain(view)}.before.size()" for view in self.views]
        notes += [f"ranked_{r.name}.marked.size" for r in self.ranked]
        self.functions.append(Code((f"bool is_noting() const {{ return {' || '.join(notes)}; }}",)))

    def describe(self, name: str, columns: list[str]) -> None:
        """The columns of an answer."""
        number, cells = len(self.infos), [WEIGHT, *columns]
        self.types += [*table("ResultColumn", f"watch_columns_{number}", cells), ""]
        self.infos.append(f"{{{quoted(name)}, watch_columns_{number}, {len(cells)}}}")

    def function(self, name: str, given: str, body: Code) -> None:
        self.functions.append(function(f"VIEWLET_COLD void {name}({given})", body))


# -- C++ ---------------------------------------------------------------------------------------------------------------


def _put(given: str, cells: list[str]) -> list[str]:
    """The function that writes one line of an answer."""
    lines = [f"        {line}" for line in ("out.put(0, times);", *cells, "out.end();")]
    return [f"    const auto put = [&](i64 times, {given}) {{", *lines, "    };"]


def _unmarked(map_: MapLayout) -> list[str]:
    if map_.is_single:
        return [f"{named('marked', map_.name, m.name)} = false;" for m in map_.members if m.name in map_.noted]
    return [f"unmark({map_.name}, {named('marked', map_.name)});"] if map_.noted else []


def _key_of(map_: MapLayout) -> str:
    return "Keyless" if map_.is_single else f"{map_.type_name}Key"


def _value_type(member: Member) -> str:
    return "double" if member.kind == REAL else type_of(member.kind)


def _value(entry: str, member: Member) -> str:
    return f"{entry}values.{member.name}{'.value().hi' if member.kind == REAL else ''}"


def _column(name: str, kind: Kind, nullable: bool) -> str:
    """A column of an answer: DATE and TIMESTAMP are the integers that they are as keys."""
    return f'{{"{name}", {_sql(kind)}, {flag(nullable)}}}'


def _sql(kind: Kind) -> str:
    if isinstance(kind, Exact):
        return (
            "Sql::BIGINT, 0, 0" if kind.scale == 0 and width(kind) == COUNT_BITS else f"Sql::DECIMAL, 38, {kind.scale}"
        )
    if kind in (TEXT, BOOLEAN):
        return f"Sql::{'VARCHAR' if kind == TEXT else 'BOOLEAN'}, 0, 0"
    return "Sql::DOUBLE, 0, 0"
