"""A script of CREATE statements → relations and results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

from viewlet.errors import TOO_DEEP, TOO_DEEP_HINT, SqlError
from viewlet.program.trigger import Script
from viewlet.schema import CLOCK
from viewlet.sql import (  # noqa: F401  their rules register themselves
    casts,
    clock,
    functions_number,
    functions_text,
    functions_time,
    gathers,
    like,
    moments,
    picks,
    quantifiers,
    quantiles,
    windows,
)
from viewlet.sql.define import Definitions, Step
from viewlet.sql.parse import Statement, only_changes, parse
from viewlet.sql.result import result
from viewlet.sql.scope import Catalog, Dialect, Names, Session, Wider
from viewlet.sql.source import Source, script_text


@dataclass(frozen=True)
class Translation:
    """A script that was translated, and what its statements define: one that goes on needs only its end translated."""

    script: Script
    catalog: Catalog
    statements: int = 0  # how many there were
    steps: tuple[Step, ...] = ()  # what those do to rows that :meth:`followed` translated

    def followed(self, source: str) -> Translation:
        """The translation of ``source``, a script that begins with the statements of this one."""
        text, known = Source(script_text(source)), self
        try:
            while True:
                try:
                    return _followed(known, text, self.statements)
                except Wider as new:  # views that were translated without it read their relation as it was
                    known = _wider(known, new)
        except RecursionError:
            line, column = text.line_column(text.statement)
            raise SqlError(TOO_DEEP, source=text.text, line=line, column=column, hint=TOO_DEEP_HINT) from None

    def changes(self, source: str) -> tuple[Step, ...] | None:
        """What a script does that only changes rows; None where it defines something."""
        text = Source(script_text(source))
        if not only_changes(text):
            return None
        definitions = _definitions(self, text)
        for statement in parse(text):
            definitions.take(statement)
        return tuple(definitions.steps)

    def refusals(self, source: str) -> list[SqlError]:
        """All that is wrong with the view that follows in ``source``, by place; :meth:`followed` raises the first."""
        known = self
        while True:
            try:
                noted = known._noted(source)
            except Wider as new:
                known = _wider(known, new)._again(source, self.statements)
            else:
                distinct = {(e.line or 0, e.column or 0, e.message): e for e in reversed(noted)}
                return [distinct[place] for place in sorted(distinct)]

    def _again(self, source: str, statements: int) -> Translation:
        """The first statements of a script, translated with what is known to be needed."""
        text = Source(script_text(source))
        definitions = _definitions(self, text)
        for statement in islice(parse(text), statements):
            definitions.take(statement)
        return replace(self, catalog=definitions.catalog, statements=statements)

    def _noted(self, source: str) -> list[SqlError]:
        catalog = self.catalog
        text = Source(script_text(source))
        text.noted, text.types = [], catalog.types
        try:
            statement = next(parse(text, after=self.statements))
            assert isinstance(statement, Statement)
            result(Session(text, catalog, self.script.dialect, Names()), statement)
        except SqlError as error:
            text.noted.append(error)
        return text.noted


def _wider(known: Translation, new: Wider) -> Translation:
    """Nothing is translated yet, but a relation will have one more derived column, or elements of its own."""
    catalog = Catalog(derived=dict(known.catalog.derived), elements=dict(known.catalog.elements))
    catalog.widen(new)
    return replace(nothing(known.script.dialect), catalog=catalog)


def nothing(dialect: Dialect) -> Translation:
    """The translation of an empty script."""
    return Translation(Script((), (), dialect), Catalog())


def translate(source: str, dialect: Dialect = "sql") -> Script:
    """The relations of a script, and how each of its views is read off sums over them.

    ``dialect="paper"``: SUM and AVG of nothing are 0 instead of NULL.
    """
    return nothing(dialect).followed(source).script


def _followed(known: Translation, text: Source, old: int) -> Translation:
    """What the first ``old`` statements do to rows, they have done."""
    definitions, statements = _definitions(known, text), known.statements
    for statement in parse(text, after=known.statements):
        definitions.take(statement)
        statements += 1
        if statements <= old:
            definitions.steps.clear()
    results = tuple(definitions.results.values())
    ticking = (CLOCK,) if definitions.catalog.reads_clock else ()
    relations = (*definitions.catalog.relations.values(), *ticking)
    script = Script(relations, results, known.script.dialect, text.text)
    return Translation(script, definitions.catalog, statements, tuple(definitions.steps))


def _definitions(known: Translation, text: Source) -> Definitions:
    names = known.catalog
    catalog = replace(names, relations=dict(names.relations), views=dict(names.views), types=dict(names.types))
    text.types = catalog.types
    return Definitions(text, known.script.dialect, catalog, {r.name: r for r in known.script.results})
