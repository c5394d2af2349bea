"""Streams that store no rows, ``WITH (stored = false)``: a sentence for each thing that needs their rows.

Their views are kept fresh as ever, and a refused batch changes nothing. Deletes are trusted: nobody knows whether the
row was there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from viewlet.algebra.query import relations
from viewlet.errors import Error
from viewlet.program.trigger import Result, Script
from viewlet.schema import Relation

IN_A_DIRECTORY = "a database in a directory stores every row: leave the option out, or use viewlet.connect()"
ON_SPARK = "on Spark every cell stores its rows, and checks deletes: leave the option out"
LEAVE_IT_OUT = "leave the option out where that is needed"


def refuse(relation: Relation, what: str) -> None:
    """``what`` needs the rows of a relation: an error where it stores none."""
    if not relation.stored:
        raise Error(f"stream {relation.name} stores no rows (stored = false), so {what}; {LEAVE_IT_OUT}")


def refuse_all(given: Iterable[Relation], why: str) -> None:
    """Where there is no place for such streams."""
    for relation in given:
        if not relation.stored:
            raise Error(f"stream {relation.name} has stored = false: {why}")


def check_rows_needed(came: Collection[str], before: Iterable[Result], after: Script, changes_rows: bool) -> None:
    """A script after rows of some streams ``came`` that are not stored: a view that is new would miss them."""
    if came and changes_rows:
        hint = "change rows, drop and rename in a script of its own, before the first row"
        raise Error(f"{_streams(came)}, so this script cannot compute the views again: {hint}")
    known, gone = {result.name: result for result in before}, set(came)
    gone |= {relation.name for relation in after.relations if _root(relation, after.relations) in came}
    for result in after.results:
        missed = frozenset().union(*map(relations, result.reads)) & gone
        if missed and known.get(result.name) != result:
            raise Error(f"{_streams(came)}, so view {result.name} would miss them: define it before the first row")


def _root(relation: Relation, known: Iterable[Relation]) -> str:
    """The stream whose rows bring those of a relation: its own, or the one that has a list of them."""
    parents = {other.name: other.of for other in known}
    name = relation.name
    while parents.get(name):
        name = parents[name]
    return name


def cannot_go_on(came: Collection[str]) -> Error:
    """No other program can take over the maps."""
    why = "define all views before the first row, and see that a C++ compiler is there"
    return Error(f"{_streams(came)}, so the views cannot be computed again for another script: {why}")


def check_static(came: Collection[str], table: str) -> None:
    if came:
        hint = f"load {table} before the first row of a stream, or make it a stream"
        raise Error(f"{_streams(came)}, so the views over table {table} cannot be computed again: {hint}")


def _streams(names: Collection[str]) -> str:
    return f"rows of {', '.join(sorted(names))} came already and are not stored (stored = false)"
