"""docs/api.md is what the code says now; every public name says something, and every argument has a type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import viewlet
from tests.unit.generate_api import MODULES, PAGE, members, page, public_names
from viewlet.compiler.strategy import STRATEGIES
from viewlet.database.memory import ENGINES
from viewlet.errors import Error


def public() -> Iterator[tuple[str, Any]]:
    """Every public function and class, and the methods and properties of the classes."""
    for module in MODULES:
        for name in public_names(module):
            thing = getattr(module, name)
            if inspect.isfunction(thing) or isinstance(thing, type):
                yield f"{module.__name__}.{name}", thing
            if isinstance(thing, type) and not issubclass(thing, Error):
                yield from ((f"{module.__name__}.{name}.{member}", code) for member, code in members(thing))


PUBLIC = dict(public())


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page().rstrip() + "\n", "run python -m tests.unit.generate_api"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_page_has_every_public_name(module: ModuleType) -> None:
    text = PAGE.read_text("utf-8")
    assert [name for name in public_names(module) if f"### `{name}`" not in text] == []


def test_every_public_name_says_what_it_is_for() -> None:
    assert [name for name, thing in PUBLIC.items() if not (thing.__doc__ or "").strip()] == []
    assert len(PUBLIC) > 50


@pytest.mark.parametrize("name", [name for name, thing in PUBLIC.items() if inspect.isfunction(thing)])
def test_every_argument_has_a_type(name: str) -> None:
    function: Callable[..., Any] = PUBLIC[name]
    signature = inspect.signature(function)
    empty = inspect.Parameter.empty
    assert [p.name for p in signature.parameters.values() if p.annotation is empty and p.name != "self"] == []
    assert signature.return_annotation is not empty


def test_choices_are_spelled_out() -> None:
    """A reader sees which engines, strategies and dialects there are, and they are all that the code knows."""
    text = PAGE.read_text("utf-8")
    assert f"engine: Literal[{', '.join(map(repr, ENGINES))}] = 'native'" in text
    assert f"strategy: Literal[{', '.join(map(repr, STRATEGIES))}] = 'optimized'" in text
    assert "Literal['sql', 'paper']" in text
    assert not any(alias in text for alias in ("EngineName", "StrategyName", "Dialect"))


def test_the_old_name_of_an_error_is_the_same_error() -> None:
    assert viewlet.OverflowError_ is viewlet.OutOfRangeError
