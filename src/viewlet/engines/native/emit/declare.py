"""C++ declarations: structs that are keys, and constant tables of what the bridge must know."""

from __future__ import annotations

from collections.abc import Iterable

from viewlet.engines.native.emit.layout import Field
from viewlet.engines.native.emit.values import Listed, integer, type_of
from viewlet.program.kinds import TEXT, Exact, Kind
from viewlet.program.trigger import ResultColumn
from viewlet.schema import REAL, TIMESTAMPTZ, Type


def struct(name: str, fields: Iterable[Field], comment: str, held: Iterable[Field] = ()) -> str:
    """A key: identity and hash go field by field; ``held`` are texts that somebody must hold for it."""
    fields = tuple(fields)
    same = " && ".join(f"same({f.name}, other.{f.name})" for f in fields) or "true"
    other = "other" if fields else ""
    return "\n".join(
        [
            f"struct {name} {{  // {comment}",
            *(f"    {field_type(f)} {f.name}{{}};" for f in fields),
            f"    bool operator==(const {name}& {other}) const {{ return {same}; }}",
            f"    u64 hash() const {{ return {hash_of(f.name for f in fields)}; }}",
            *each_text(name, held),
            "};",
        ]
    )


def each_text(type_: str, fields: Iterable[Field]) -> list[str]:
    """What names the texts of a key that somebody must hold; nothing where there are none. NULL has the empty one."""
    uses = [f"use(of.{f.name}{'.value' if f.nullable else ''});" for f in fields]
    return [f"    static void each_text(const {type_}& of, const auto& use) {{ {' '.join(uses)} }}"] if uses else []


def field_type(f: Field) -> str:
    return f"Opt<{type_of(f.kind)}>" if f.nullable else type_of(f.kind)


def hash_of(names: Iterable[str]) -> str:
    text = "seed"
    for name in names:
        text = f"mix({text}, {name})"
    return text


def table(type_: str, name: str, entries: list[str]) -> list[str]:
    """C++ knows no arrays of length 0."""
    if not entries:
        return [f"inline constexpr Nothing {name};"]
    return [f"inline constexpr {type_} {name}[] = {{", *(f"    {e}," for e in entries), "};"]


def column(name: str, f: Field, struct: str, type_: Type | None, *, read: bool = True) -> str:
    """``type_`` is None for a column of a key, which only takes cells. So do most types that are held as others."""
    scale = f.kind.scale if isinstance(f.kind, Exact) else 0
    places = f"{type_.precision if type_ else 0}, {scale}, offsetof({struct}, {f.name})"
    sql = f", Sql::{type_.kind}" if type_ and (type_ == type_.held or type_ in (TIMESTAMPTZ, REAL)) else ""
    unread = ", false" if sql and not read else ""
    return f"{{{quoted(name)}, {cell_of(f.kind)}, {flag(f.nullable)}, {places}{sql}{unread}}}"


def cell_of(kind: Kind) -> str:
    names = {"i64": "I64", "i128": "I128", "double": "F64", "Text": "TEXT", "bool": "BOOL"}
    return f"Cell::{names[type_of(kind)]}"


def shown_column(column: ResultColumn) -> str:
    """Of a result. A type that is held as another is shown as that, for Python to make its values of."""
    type_ = column.type.held
    return f"{{{quoted(column.name)}, Sql::{type_.kind}, {type_.precision}, {type_.scale}, {flag(column.nullable)}}}"


def flag(value: bool) -> str:
    return "true" if value else "false"


def quoted(text: str) -> str:
    plain = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode())
    return f'"{plain}"'


def c_string(text: str) -> str:
    """A string and its length."""
    return f"{quoted(text)}, {len(text.encode())}"


def list_members(listed: Listed, name: str) -> list[str]:
    """The list of an IN as members of the program."""
    kind, values = listed.kind, listed.values
    if kind == TEXT:
        words = ", ".join(f"{{{c_string(str(word))}}}" for word in values)
        return [
            f"static constexpr Bytes {name}_words[] = {{{words}}};",
            f"const TextSet {name}{{texts, {name}_words, {len(values)}}};",
        ]
    written = ", ".join(integer(int(n), kind) if isinstance(kind, Exact) else repr(n) for n in values)
    return [f"static constexpr {type_of(kind)} {name}[] = {{{written}}};"]
