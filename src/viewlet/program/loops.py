"""Loop nests: what a trigger statement does, step by step, with every read given its access path.

One small language for every engine that generates code. A block is a sequence of steps; a step with a ``body`` runs it
once for each way it finds. Names are variables of the calculus and are assigned once on each path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from viewlet.algebra.query import Atom, Compare
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
    """``body`` for each entry of ``source`` that agrees with the ``bound`` variables: a slice or a scan."""

    source: Atom
    bound: frozenset[str]
    value: str
    body: Block


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
    """``body`` for every tuple that a group has with a multiplicity other than 0."""

    name: str
    keys: tuple[str, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Emit:
    """The change of ``view``: ``product`` at ``key``."""

    key: tuple[str, ...]
    product: Product
    view: str = ""


Step = Let | Same | Test | Get | Loop | Total | Add | Nonzero | Group | Put | EachGroup | Emit
Block = tuple[Step, ...]


def blocks(block: Block) -> Iterator[Block]:
    """A block and all blocks inside it."""
    yield block
    for step in block:
        if not isinstance(step, (Let, Add, Put, Emit)):
            yield from blocks(step.body)
