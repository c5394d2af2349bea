"""View caches as C++: how what they hold is refreshed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from viewlet.engines.native.emit.changes import Changes
from viewlet.engines.native.emit.context import Context, Temporary
from viewlet.engines.native.emit.identifiers import named
from viewlet.engines.native.emit.keys import column
from viewlet.engines.native.emit.layout import MapLayout, Member
from viewlet.engines.native.emit.pointers import Pointer
from viewlet.engines.native.emit.values import Cpp, Scope
from viewlet.program.trigger import Statement


@dataclass(frozen=True)
class Caches:
    """Writes what one function does to view caches."""

    context: Context
    changes: Changes

    @contextmanager
    def held(
        self, map_: MapLayout, statement: Statement, into: Temporary, scope: Scope
    ) -> Iterator[tuple[str, dict[str, Cpp]]]:
        """foreach x⃗_in do: over what a view cache held when the refresh began, where it agrees with the event.

        It gives the C++ name of what is held, and the inputs.
        """
        entry, of = self.context.fresh("held"), named("held", map_.name)
        each = f"auto* {entry} = {of}.first(); {entry}; {entry} = {of}.next({entry})"
        tests = [f"{entry}->values.there", f"{entry}->values.born < started_{into.name}"]
        given = {}
        for name, of_key in zip(statement.target.inputs, map_.key, strict=False):
            given[name] = column(f"{entry}->key", of_key)
            if name in scope:
                tests.append(self.context.terms.identical(scope[name], given[name]))
        out = self.context.out
        with out.inside(f"for ({each})"), out.inside(f"if ({' && '.join(tests)})"):
            yield entry, given

    def refresh(self, statement: Statement, into: Temporary, scope: Scope) -> None:
        """What came in since the refresh began missed it and is dropped; it is filled again when read."""
        map_, member = self.context.layout[statement.target.name]
        out, h, held = self.context.out, self.context.fresh("late"), named("held", map_.name)
        with (
            out.inside(f"for (auto* {h} = {held}.first(); {h}; {h} = {held}.next({h}))"),
            out.inside(f"if ({h}->values.born > started_{into.name})"),
        ):
            self.erase_slice(map_, member, h)
            out.add(f"{h}->values.there = false;")
            out.add(f"{held}.doubt(*{h});")
        self.context.written.add(held)
        if statement.op == ":=":
            with self.held(map_, statement, into, scope) as (entry, _):
                self.erase_slice(map_, member, entry)

    def erase_slice(self, map_: MapLayout, member: Member, held: str) -> None:
        """All that a view cache holds for one tuple of inputs."""
        index, e = map_.index(tuple(range(map_.inputs))), self.context.fresh("old")
        probe = ", ".join(f".{f.name} = {held}->key.{f.name}" for f in map_.key[: map_.inputs])
        first, following = f"{map_.name}.first<{index}>({{{probe}}})", f"{map_.name}.next<{index}>({e})"
        with self.context.out.inside(f"for (auto* {e} = {first}; {e}; {e} = {following})"):
            self.changes.erase(map_, member, Pointer(e))
