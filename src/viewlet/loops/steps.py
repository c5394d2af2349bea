"""Loop nests: what a trigger statement does, step by step, with every read given its access path.

One small language for every engine that generates code. A block is a sequence of steps; a step with a ``body`` runs it
once for each way it finds. Names are variables of the calculus and are assigned once on each path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from viewlet.algebra.query import Atom, Compare, View
from viewlet.algebra.terms import Term


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor of a product; where its term may be NULL (``nullable``) it counts 0, as in the calculus.

    ``plain``: nothing inside the term can be NULL either, so that ordinary arithmetic computes it.
    """

    term: Term
    nullable: bool = False
    plain: bool = True


Product = tuple[Factor, ...]


@dataclass(frozen=True, slots=True)
class Let:
    """``var = term`` for what follows in the block."""

    var: str
    term: Term
    plain: bool


@dataclass(frozen=True, slots=True)
class Same:
    """``body`` where ``var`` and ``term`` are identical, NULL being NULL."""

    var: str
    term: Term
    plain: bool
    body: Block


@dataclass(frozen=True, slots=True)
class Test:
    """``body`` where the comparison holds; a side that is NULL (``nullable``) is not true."""

    compare: Compare
    nullable: bool
    plain: bool
    body: Block


@dataclass(frozen=True, slots=True)
class Get:
    """``value = source[key]``, then ``body`` if there is such an entry: a lookup."""

    source: Atom
    value: str
    body: Block


@dataclass(frozen=True, slots=True)
class Loop:
    """``body`` for each entry of ``source`` that agrees with the ``bound`` variables: a slice or a scan.

    With an ``order``, of these only the entries in its ranges: what else is there is not looked at.
    """

    source: Atom
    bound: frozenset[str]
    value: str
    body: Block
    order: Order | None = None


# -- ordered reads: the entries of a view in the order of one key column -----------------------------------------------


@dataclass(frozen=True, slots=True)
class Cut:
    """A comparison that the keys of an order meet from one of them on (``up``) or up to one.

    Not ``holds``: the keys where it is not true, which lie on the other side.
    """

    compare: Compare
    up: bool
    nullable: bool
    plain: bool
    holds: bool = True


@dataclass(frozen=True, slots=True)
class InRun:
    """The keys k in a run of ``runs``: [C(inside, k)] and not [C(outside, k)], where ``inner`` names C's other key.

    ``up``: C holds for k from some key on.
    """

    runs: str
    compare: Compare
    inner: str
    up: bool
    nullable: bool
    plain: bool


Range = tuple[Cut | InRun, ...]  # the keys that all of them admit


@dataclass(frozen=True, slots=True)
class Order:
    """By the column ``key``, the entries in any of the ``ranges``, which have no key in common.

    ``single``: they admit one key at most, as where no smaller one is there.
    """

    key: str
    ranges: tuple[Range, ...]
    single: bool = False


@dataclass(frozen=True, slots=True)
class RangeSum:
    """``var`` = the sum of ``source`` where it agrees with ``bound`` and the key lies in the ranges."""

    var: str
    source: View
    bound: frozenset[str]
    order: Order


@dataclass(frozen=True, slots=True)
class Runs:
    """``var`` = the runs of keys for which the running sum ``total`` of ``source`` meets the test.

    The sum runs over the entries that agree with ``bound``, in the order of ``key``: from the least key on, or
    (``after``) from the greatest down. The test, monotone in ``total``, holds for great ones (``up``) or small ones.
    """

    var: str
    source: View
    bound: frozenset[str]
    key: str
    after: bool
    total: str
    test: Cut


@dataclass(frozen=True, slots=True)
class EachSlice:
    """``body`` for every slice of ``source`` that agrees with ``bound``: its columns but ``key`` and the ``summed``."""

    source: View
    bound: frozenset[str]
    key: str
    summed: frozenset[str]
    body: Block


@dataclass(frozen=True, slots=True)
class Extremum:
    """``var`` = the least (or ``greatest``) ``key`` of ``source`` where it agrees with ``bound``; NULL without any.

    With a ``place``: the first key, from that end on, up to which ``source`` sums up to more.
    """

    var: str
    source: View
    bound: frozenset[str]
    key: str
    greatest: bool
    place: Term | None = None


# -- sums and changes --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Total:
    """``var = 0``, then ``body``, whose :class:`Add` steps add to it; its value is there for what follows."""

    var: str
    body: Block


@dataclass(frozen=True, slots=True)
class Add:
    var: str
    product: Product


@dataclass(frozen=True, slots=True)
class Nonzero:
    """``body`` where a total came to something."""

    var: str
    body: Block


@dataclass(frozen=True, slots=True)
class Group:
    """``name`` becomes the GMR that the :class:`Put` steps of ``body`` add up to."""

    name: str
    body: Block


@dataclass(frozen=True, slots=True)
class Put:
    name: str
    keys: tuple[str, ...]
    product: Product


@dataclass(frozen=True, slots=True)
class EachGroup:
    """``body`` for every tuple of a group with a multiplicity other than 0, which is ``value`` where it counts."""

    name: str
    keys: tuple[str, ...]
    body: Block
    value: str = ""


@dataclass(frozen=True, slots=True)
class Emit:
    """The change of ``view``: ``product`` at ``key``."""

    key: tuple[str, ...]
    product: Product
    view: str = ""


Ordered = RangeSum | Runs | Extremum
Leaf = Let | Ordered | Add | Put | Emit
Step = Let | Same | Test | Get | Loop | EachSlice | Ordered | Total | Add | Nonzero | Group | Put | EachGroup | Emit
Block = tuple[Step, ...]
LEAVES = (Let, RangeSum, Runs, Extremum, Add, Put, Emit)  # the steps without a body


def blocks(block: Block) -> Iterator[Block]:
    """A block and all blocks inside it."""
    yield block
    for step in block:
        if not isinstance(step, LEAVES):
            yield from blocks(step.body)
