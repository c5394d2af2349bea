"""Every program computes its query: random queries of the calculus, all strategies and engines, after every update.

The streams insert and delete at will, so multiplicities go below zero: what holds for GMRs holds for SQL tables.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.queries import MULTIPLICITIES, NUMBERS, SCHEMA, STRINGS, is_string, queries
from viewlet.algebra.evaluate import Entries, Key, evaluate, over
from viewlet.algebra.query import Query, View, outputs
from viewlet.compiler.script import compile_query
from viewlet.compiler.strategy import STRATEGIES
from viewlet.engines.exact.interpreter import Interpreter
from viewlet.engines.exact.python.engine import PythonEngine
from viewlet.schema import BIGINT, VARCHAR, Column, Relation

RELATIONS = tuple(
    Relation(name, tuple(Column(c, VARCHAR if is_string(c) else BIGINT, nullable=False) for c in columns))
    for name, columns in SCHEMA.items()
)
Update = tuple[str, Entries]


def rows(relation: str) -> st.SearchStrategy[Key]:
    return st.tuples(*(st.sampled_from(STRINGS if is_string(c) else NUMBERS) for c in SCHEMA[relation]))


@st.composite
def updates(draw: st.DrawFn) -> list[Update]:
    """Single tuples and batches; a batch may hold any multiplicities."""
    stream: list[Update] = []
    for _ in range(draw(st.integers(6, 12))):
        relation = draw(st.sampled_from(sorted(SCHEMA)))
        if draw(st.integers(1, 4)) == 1:
            batch = draw(st.dictionaries(rows(relation), st.sampled_from(MULTIPLICITIES), min_size=1, max_size=3))
            stream.append((relation, dict(batch)))
        else:
            stream.append((relation, {draw(rows(relation)): draw(st.sampled_from((1, 1, -1)))}))
    return stream


def apply(engine: Interpreter, relation: str, entries: Entries) -> None:
    if len(entries) == 1 and set(entries.values()) <= {1, -1}:
        ((row, m),) = entries.items()
        engine.apply("+" if m == 1 else "-", relation, row)
    else:
        engine.apply_bulk(relation, entries)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(q=queries(), stream=updates())
@settings(max_examples=60)
def test_a_program_computes_its_query(strategy: str, q: Query, stream: list[Update]) -> None:
    program = compile_query("Q", q, RELATIONS, strategy)
    view = program.results[0].rows
    assert isinstance(view, View)
    engines = [Interpreter(program), PythonEngine(program)]
    for relation, entries in stream:
        for engine in engines:
            apply(engine, relation, entries)
            tables = {name: engine.table(name) for name in SCHEMA}
            truth = evaluate(q, over(tables), tuple(sorted(outputs(q))))
            order = [view.outputs.index(c) for c in sorted(outputs(q))]
            content = engine.entries(view.name)
            assert {tuple(key[i] for i in order): m for key, m in content.items()} == truth, str(program)
