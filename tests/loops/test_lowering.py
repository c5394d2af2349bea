"""Which part of a product comes first, of those that cost the same."""

from __future__ import annotations

import viewlet
from viewlet.loops.lower import Lowering
from viewlet.loops.pipeline import plan
from viewlet.loops.steps import Loop, blocks

STAR = """
CREATE STREAM a (k INTEGER NOT NULL, g INTEGER NOT NULL, x INTEGER NOT NULL);
CREATE STREAM z (k INTEGER NOT NULL, g INTEGER NOT NULL, x INTEGER NOT NULL);
CREATE STREAM f (ak INTEGER NOT NULL, zk INTEGER NOT NULL, v INTEGER NOT NULL);
CREATE MATERIALIZED VIEW q AS SELECT a.g AS ag, z.g AS zg, sum(f.v) AS s
FROM a, z, f WHERE a.k = f.ak AND z.k = f.zk AND {test} GROUP BY a.g, z.g;
"""


def looped(test: str) -> list[str]:
    """The maps that a fact goes over, from outside in."""
    program = viewlet.compile(STAR.format(test=test))
    trigger = next(t for t in program.triggers if (t.event.kind, t.event.relation) == ("+", "f"))
    first = plan(program, trigger, Lowering.of(program)).turns[0].block
    return [step.source.name for block in blocks(first) for step in block if isinstance(step, Loop)]


def test_a_map_that_leaves_out_rows_comes_first() -> None:
    assert looped("a.x > 3") == ["q_a", "q_z"]
    assert looped("z.x > 3") == ["q_z", "q_a"]
