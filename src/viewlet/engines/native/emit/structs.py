"""The types of a C++ program: rows, keys and values of maps, indexes, orders."""

from __future__ import annotations

from viewlet.engines.native.emit.context import Temporary
from viewlet.engines.native.emit.declare import (
    each_text,
    hash_of,
    struct,
)
from viewlet.engines.native.emit.identifiers import capital, identifier, plain, unique
from viewlet.engines.native.emit.keys import view_constant
from viewlet.engines.native.emit.layout import Answer, Field, MapLayout, OrderLayout, Positions
from viewlet.engines.native.emit.values import tree_key, type_of, value_type
from viewlet.program.kinds import REAL, column_kind
from viewlet.program.trigger import Program
from viewlet.schema import Relation


def row_fields(relation: Relation) -> tuple[Field, ...]:
    taken: set[str] = set()
    return tuple(Field(unique(identifier(c.name), taken), column_kind(c.type), c.nullable) for c in relation.columns)


def row_struct(relation: Relation, fields: tuple[Field, ...]) -> str:
    """A packed table takes a row apart and puts it together again cell by cell."""
    text = struct(row_type(relation.name), fields, f"a row of {relation.name}").removesuffix("};")
    cells = " ".join(f"use(row.{f.name});" for f in fields)
    return f"{text}    static constexpr void each_cell(auto& row, const auto& use) {{ {cells} }}\n}};\n"


def row_type(relation: str) -> str:
    return f"{capital(plain(relation))}Row"


def key_types(relation: Relation, fields: tuple[Field, ...]) -> str:
    """Of each key an index of the table, and which rows have a value of it."""
    at = {column.name: field for column, field in zip(relation.columns, fields, strict=True)}
    return "".join(_key_type(relation.name, n, [at[c] for c in key]) for n, key in enumerate(relation.keys))


def _key_type(relation: str, number: int, fields: list[Field]) -> str:
    row = row_type(relation)
    nulls = [f"!is_null(k.{f.name})" for f in fields if f.nullable]
    whole = f"(const {row}&{' k' if nulls else ''}) {{ return {' && '.join(nulls) or 'true'}; }}"
    index = _index_struct(key_type(relation, number), row, [f.name for f in fields], False)
    return f"{index.removesuffix('};')}    static bool is_whole{whole}\n}};\n"


def key_type(relation: str, number: int) -> str:
    return f"{row_type(relation)}Key{number}"


def map_types(map_: MapLayout) -> str:
    parts = []
    if not map_.is_single:
        parts.append(struct(f"{map_.type_name}Key", map_.key, ", ".join(m.view for m in map_.members)))
    parts.append(_values(map_))
    if map_.inputs:
        parts.append(struct(f"{map_.type_name}Inputs", map_.key[: map_.inputs], f"what {map_.name} is asked for"))
        parts.append(_held(map_))
    parts += [_index(map_, positions) for positions in map_.indexes]
    return "\n".join(parts) + "\n"


def _held(map_: MapLayout) -> str:
    lines = [f"struct {map_.type_name}Held {{", "    i64 born{};", "    bool there{};"]
    lines += each_text(f"{map_.type_name}Inputs", map_.held_inputs)
    return "\n".join([*lines, "    bool settle() { return !there; }", "};"])


def _values(map_: MapLayout) -> str:
    resets = [
        f"        if ({m.counted_by} == 0) {m.name}.clear();  // a sum over no rows"
        for m in map_.members
        if m.counted_by is not None
    ]
    zero = " && ".join(f"is_zero({m.name})" for m in map_.members)
    return "\n".join(
        [
            f"struct {map_.type_name}Values {{",
            *(f"    {value_type(m.kind)} {m.name}{{}};" for m in map_.members),
            *each_text(f"{map_.type_name}Key", map_.held),
            *_each_real(map_),
            "    bool settle() {",
            *resets,
            f"        return {zero};",
            "    }",
            "};",
        ]
    )


def _each_real(map_: MapLayout) -> list[str]:
    """What names the sums of doubles, where a batch may be undone: a copy of such a sum is more than its bytes."""
    uses = [f"use({m.name});" for m in map_.members if m.kind == REAL]
    return [f"    void each_real(const auto& use) {{ {' '.join(uses)} }}"] if map_.undone and uses else []


def _index(map_: MapLayout, positions: Positions) -> str:
    names = [map_.key[i].name for i in positions]
    return _index_struct(map_.index_name(positions), f"{map_.type_name}Key", names, positions in map_.read_often)


def _index_struct(name: str, key: str, names: list[str], read_often: bool) -> str:
    same = " && ".join(f"viewlet::same(a.{n}, b.{n})" for n in names)
    lines = [f"struct {name} {{"]
    if read_often:
        lines.append("    static constexpr bool read_often = true;")
    lines.append(f"    static u64 hash(const {key}& k) {{ return {hash_of(f'k.{n}' for n in names)}; }}")
    lines.append(f"    static bool same(const {key}& a, const {key}& b) {{ return {same}; }}")
    return "\n".join([*lines, "};"])


def order_types(map_: MapLayout, order: OrderLayout) -> str:
    """How an order knows the slices and keys of a map's entries, and what it adds up."""
    name, by = order.type_name, map_.key[order.key_at]
    fields = [map_.key[i] for i in order.slice_at]
    members = {m.name: m for m in map_.members}
    lanes = [(members[m], running) for m, running in order.lanes.items()]
    types = [f"Lane<{type_of(m.kind)}{_running(running)}>" for m, running in lanes]
    key, slice_ = f"{map_.type_name}Key", f"{name}Slice"
    values = ", ".join(f"e.values.{m.name}{'.value()' if m.kind == REAL else ''}" for m, _ in lanes)
    nothing = " && ".join(f"is_zero(v.{m.name})" for m, _ in lanes)
    parts = [struct(slice_, fields, f"a slice of {map_.name}")] if fields else []
    parts += [_slice_index(order, slice_, fields, positions) for positions in order.slice_indexes]
    parts += [
        f"struct {name} {{  // {map_.name} in the order of {by.name}",
        f"    using Tree = {_tree(order, tree_key(by.kind), types)};",
        f"    using Slice = {slice_ if fields else 'NoSlice'};",
        f"    static bool orders(const {key}&{' k' if by.nullable else ''}) "
        f"{{ return {f'!is_null(k.{by.name})' if by.nullable else 'true'}; }}",
        f"    static {tree_key(by.kind)} by(const {key}& k) {{ return k.{by.name}{'.value' if by.nullable else ''}; }}",
        f"    static Slice slice(const {key}&{' k' if fields else ''}) "
        f"{{ return {{{', '.join(f'k.{f.name}' for f in fields)}}}; }}",
        f"    static bool is_nothing(const {map_.type_name}Values& v) {{ return {nothing}; }}",
        "    template <class Entry>",
        "    static void set(Tree& tree, const Texts& texts, const Entry& e) {",
        f"        tree.set(texts, by(e.key), e.head.id, {values});",
        "    }",
        "};",
    ]
    return "\n".join(parts) + "\n"


def _tree(order: OrderLayout, key: str, lanes: list[str]) -> str:
    if not order.answers:
        return f"viewlet::Tree<{', '.join([key, *lanes])}>"
    return f"RememberingTree<{key}, Memories<{', '.join(map(_memory, order.answers))}>, {', '.join(lanes)}>"


def _memory(answer: Answer) -> str:
    lanes = ", ".join(map(str, answer.lanes))
    return f"RangeSums<{lanes}>" if answer.after is None else f"CrossingOf<{lanes}, {str(answer.after).lower()}>"


def _running(asked: set[str]) -> str:
    return f", Running::{'BOTH' if len(asked) == 2 else next(iter(asked))}" if asked else ""


def _slice_index(order: OrderLayout, slice_: str, fields: list[Field], positions: Positions) -> str:
    return _index_struct(order.slice_index_name(positions), slice_, [fields[i].name for i in positions], False)


def temporary_types(t: Temporary) -> str:
    key = struct(f"{capital(t.name)}Key", t.key, "for one statement")
    members = f"    {value_type(t.kind)} sum{{}};\n    bool settle() {{ return is_zero(sum); }}\n"
    return f"{key}\nstruct {capital(t.name)}Values {{\n{members}}};\n"


def view_numbers(program: Program) -> str:
    names = ", ".join(view_constant(v.name) for v in program.views)
    return f"enum : u32 {{ {names} }};  // for errors that name a view\n" if names else ""
