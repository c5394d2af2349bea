"""Writes docs/api.md from signatures and docstrings: ``python -m tests.unit.generate_api``."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import viewlet
import viewlet.spark
import viewlet.spark.sinks
from viewlet.check import Finding
from viewlet.compilation import Dialect
from viewlet.compiler.strategy import StrategyName
from viewlet.database.asking import Answer
from viewlet.database.handles import Listing, Table
from viewlet.database.memory import EngineName
from viewlet.database.stats import Held, HeldMap, Stats
from viewlet.explain import Explanation
from viewlet.session.changing import Changes

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
WIDTH = 100
INTRODUCTION = """\
# The Python API

`python -m tests.unit.generate_api` writes this page from signatures and docstrings, and a test says that it is current.
[sql.md](sql.md) has the SQL, [spark.md](spark.md) has Spark at work, [errors.md](errors.md) the errors with examples,
and [cookbook.md](cookbook.md) short recipes.

A row is a tuple of Python values. A *change* is a pair `(weight, row)`: the weight says how often the row came, and is
negative for a row that went.
"""
RETURNED = {
    "viewlet": (Table, Answer, Listing, Explanation, Finding, Changes, Stats, Held, HeldMap),
    "viewlet.spark": (),
    "viewlet.spark.sinks": (),
}
MODULES = (viewlet, viewlet.spark, viewlet.spark.sinks)
OLD_NAMES = {"OverflowError_": "OutOfRangeError"}
SPECIAL = ("__getitem__", "__len__")  # worth a section where they say something


def _choice(literal: object) -> str:
    return f"Literal[{', '.join(repr(name) for name in get_args(literal))}]"


ALIASES = {
    "EngineName": _choice(EngineName),
    "StrategyName": _choice(StrategyName),
    "Dialect": _choice(Dialect),
    "Change": "tuple[int, Row]",
    "Row": "tuple[Any, ...]",
}
ON_SPARK = {
    **ALIASES,
    "Frames": "Mapping[str, DataFrame]",
    "Trigger": "str | Mapping[str, Any]",
    "Setting": "str | int | float | bool",
    "Progress": "Mapping[str, Any]",
    "Sink": "Callable[[DataFrame, int], None]",
}


def page() -> str:
    return "\n".join([INTRODUCTION, *(block for module in MODULES for block in _module(module))])


def public_names(module: ModuleType) -> list[str]:
    return [name for name in module.__all__ if not name.startswith("__")]


def _module(module: ModuleType) -> Iterator[str]:
    yield f"## `{module.__name__}`\n"
    for name in sorted(public_names(module), key=lambda name: (isinstance(getattr(module, name), type), name)):
        yield from _entry(name, getattr(module, name))
    for returned in RETURNED[module.__name__]:
        yield from _entry(returned.__name__, returned)


def _entry(name: str, thing: Any) -> Iterator[str]:
    yield f"### `{name}`\n"
    if name in OLD_NAMES:
        yield f"The old name of `{OLD_NAMES[name]}`. Code that catches it goes on working.\n"
    elif inspect.isfunction(thing):
        yield from (_signature(thing), _prose(thing))
    elif isinstance(thing, type):
        yield from _class(thing)
    else:
        yield f"A type: `{ON_SPARK[name]}`.\n"


def _class(thing: type) -> Iterator[str]:
    bases = [base.__name__ for base in thing.__bases__ if issubclass(base, Exception)]
    if bases:
        yield f"A subclass of `{bases[0]}`.\n"
    yield _prose(thing)
    if dataclasses.is_dataclass(thing):
        fields = (f"`{f.name}: {_annotation(f.type, thing)}`" for f in dataclasses.fields(thing))
        yield _filled(f"Fields: {', '.join(fields)}.")
    if not bases:
        for name, member in members(thing):
            yield f"#### `{thing.__name__}.{name}{'' if isinstance(member, property) else '()'}`\n"
            yield from _member(member)


def members(thing: type) -> list[tuple[str, Any]]:
    """The public methods and properties of a class, in the order in which they are written."""
    written = [item for kind in thing.__mro__ if kind.__module__.startswith("viewlet") for item in vars(kind).items()]
    own = dict(reversed(written))
    plain = ((n, m.__func__ if isinstance(m, staticmethod) else m) for n, m in ((n, own[n]) for n, _ in written))
    return [
        (name, member)
        for name, member in dict(plain).items()
        if (inspect.isfunction(member) or isinstance(member, property))
        and (not name.startswith("_") or (name in SPECIAL and member.__doc__))
    ]


def _member(member: Any) -> Iterator[str]:
    if isinstance(member, property):
        assert member.fget is not None
        yield f"A property: `{_annotation(inspect.signature(member.fget).return_annotation, member.fget)}`.\n"
    else:
        yield _signature(member)
    yield _prose(member)


def _signature(function: Callable[..., Any]) -> str:
    shown = list(_parameters(function))
    answer = _annotation(inspect.signature(function).return_annotation, function)
    line = f"{function.__name__}({', '.join(shown)}) -> {answer}"
    if len(line) > WIDTH:
        line = "\n".join([f"{function.__name__}(", *(f"    {p}," for p in shown), f") -> {answer}"])
    return f"```python\n{line}\n```\n"


def _parameters(function: Callable[..., Any]) -> Iterator[str]:
    """As they are written, with the star before those that are given by name."""
    is_starred = False
    for p in (p for p in inspect.signature(function).parameters.values() if p.name != "self"):
        if p.kind is p.KEYWORD_ONLY and not is_starred:
            is_starred = True
            yield "*"
        stars = "**" if p.kind is p.VAR_KEYWORD else ""
        default = "" if p.default is p.empty else f" = {p.default!r}"
        yield f"{stars}{p.name}: {_annotation(p.annotation, function)}{default}"


def _annotation(annotation: object, where: Any) -> str:
    return expanded(str(annotation), ON_SPARK if where.__module__.startswith("viewlet.spark") else ALIASES)


def expanded(annotation: str, aliases: Mapping[str, str]) -> str:
    """An annotation with our own names for types spelled out; a Change is spelled with a Row."""
    for name in aliases:
        annotation = re.sub(rf"\b{name}\b", lambda match: aliases[match[0]], annotation)
    return annotation


def _prose(thing: Any) -> str:
    """A docstring as Markdown: roles and double backquotes become code, paragraphs are filled again."""
    text = inspect.getdoc(thing) or ""
    text = re.sub(r":(?:func|meth):`([^`]+)`", r"`\1()`", text)
    text = re.sub(r":class:`([^`]+)`", r"`\1`", text).replace("``", "`")
    return "\n".join(_filled(" ".join(paragraph.split())) for paragraph in text.split("\n\n"))


def _filled(text: str) -> str:
    return textwrap.fill(text, 120, break_on_hyphens=False, break_long_words=False) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page().rstrip() + "\n", "utf-8")
