"""Ordered access paths in Python: the entries of a slice in the order of one column, with sums over ranges of it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import accumulate
from operator import add, itemgetter
from typing import Any

from viewlet.algebra.terms import Number, exact

Held = tuple[Any, ...]  # a key as a store holds it
Key = Any  # what a tree is ordered by: numbers or texts, never NULL
Entry = Any  # what names an entry: any hashable
Bound = Callable[[Key], bool] | None  # monotone along the keys; None: no bound
Run = tuple[bool, Key, bool, Key]  # is there an `inside`, which; is there an `outside`, which
Positions = tuple[int, ...]
Index = dict[Any, dict[Held, None]]  # the value at a position, or the values at some, ↦ the slices that have them

FULL = 32  # a node with more keys is split: a step in Python costs more than a scan of so many in C
SPARSE = FULL // 4  # a node with fewer is merged: far from half of FULL, lest one key to and fro split and merge


class Node:
    """A leaf: keys with the sum of each. Above: the least key of each child with the sum of all below it."""

    __slots__ = ("children", "keys", "sums", "within")

    def __init__(self, keys: list[Key], sums: list[Number], children: list[Node] | None = None) -> None:
        self.keys, self.sums, self.children = keys, sums, children
        self.within: tuple[Number, Number] | None = None  # what `reach` found; None once a sum has changed

    def reach(self) -> tuple[Number, Number]:
        """The least and the greatest running sum from the left, the empty one included.

        Those from the right are total − greatest and total − least.
        """
        if self.within is None:
            running = list(accumulate(self.sums, initial=0))
            if self.children is None:
                self.within = min(running), max(running)
            else:
                least, greatest = zip(*[child.reach() for child in self.children], strict=True)
                self.within = min(map(add, running, least)), max(map(add, running, greatest))
        return self.within

    def split(self) -> Node:
        """Keep the left half, which has just changed; the right half is a node of its own."""
        half = len(self.keys) // 2
        right = Node(self.keys[half:], self.sums[half:], self.children and self.children[half:])
        del self.keys[half:], self.sums[half:]
        if self.children is not None:
            del self.children[half:]
        return right

    def merge(self, at: int) -> None:
        """Join the child at ``at`` with a neighbour; if that is too much for one node, each gets half."""
        assert self.children is not None
        at = max(at - 1, 0)
        left, right = self.children[at : at + 2]
        left.keys += right.keys
        left.sums += right.sums
        if left.children is not None and right.children is not None:
            left.children += right.children
        left.within = None
        self.replace(at, at + 2, [left, left.split()] if len(left.keys) > FULL else [left])

    def replace(self, start: int, stop: int, children: list[Node]) -> None:
        assert self.children is not None
        self.keys[start:stop] = [child.keys[0] for child in children]
        self.sums[start:stop] = [sum(child.sums) for child in children]
        self.children[start:stop] = children


class Tree:
    """Entries in the order of one key column, with sums per node: a B-tree, O(log n) to change and to ask.

    It holds each key once, with the sum of the entries that have it. A bound is a predicate: ``up`` is false, then true
    along ascending keys, ``down`` is true, then false.

    >>> tree = Tree()
    >>> for price, volume in (10, 5), (20, 7), (30, 2):
    ...     tree.set(price, ("bid", price), volume)
    >>> tree.sum(lambda price: price > 10, None)
    9
    >>> tree.runs(after=True, holds=lambda volume: 4 * volume < 14)
    [(False, None, True, 20)]
    """

    def __init__(self) -> None:
        self._root = Node([], [])
        self._entries: dict[Key, dict[Entry, Number]] = {}
        self._size = 0
        self._negative = 0  # how many keys have a negative sum: where none has, running sums are monotone

    def __len__(self) -> int:
        return self._size

    def set(self, key: Key, entry: Entry, value: Number) -> None:
        """Put the entry at ``key``, or give it another value there."""
        entries = self._entries.get(key)
        if entries is None:
            self._entries[key] = {entry: value}
            self._size += 1
            self._insert(key, value)
            return
        before = entries.get(entry)
        entries[entry] = value
        if before is None:
            self._size += 1
            self._change(key, value)
        else:
            self._change(key, value - before)

    def erase(self, key: Key, entry: Entry) -> None:
        """Take the entry away; nothing happens if there is none."""
        entries = self._entries.get(key)
        if entries is None or entry not in entries:
            return
        value = entries.pop(entry)
        self._size -= 1
        if entries:
            self._change(key, -value)
        else:
            del self._entries[key]
            self._remove(key, value)

    def sum(self, up: Bound, down: Bound) -> Number:
        """Σ of the values with up(key) ∧ down(key)."""
        return exact(_sum(self._root, up, down)) if self._size else 0

    def range(self, up: Bound, down: Bound) -> list[tuple[Entry, Number]]:
        """The entries with up(key) ∧ down(key) in order; a list, so that the tree may change meanwhile."""
        keys: list[Key] = []
        if self._size:
            _collect(self._root, up, down, keys)
        entries = self._entries
        return [item for key in keys for item in entries[key].items()]

    def runs(self, after: bool, holds: Callable[[Number], bool]) -> list[Run]:
        """Where ``holds``, monotone in its argument, is true of the running sum from the left (``after``: the right).

        Each maximal range of positions is (is there an inside, inside, is there an outside, outside): the key whose
        adding began it, none where the empty sum does, and the key whose adding ended it, none where nothing does.
        """
        if self._negative:
            flips: list[Key] = []
            _flips(self._root, 0, after, holds, flips)
        else:
            flips = _flip(self._root, after, holds)
        edges: list[tuple[bool, Key]] = [(True, key) for key in flips]
        if holds(0):
            edges.insert(0, (False, None))
        if len(edges) % 2:
            edges.append((False, None))
        return [(*inside, *outside) for inside, outside in zip(edges[::2], edges[1::2], strict=True)]

    def first(self) -> tuple[Key, Entry] | None:
        """The least key and an entry that has it."""
        return self._at(self._root.keys[0]) if self._size else None

    def last(self) -> tuple[Key, Entry] | None:
        """The greatest key and an entry that has it."""
        if not self._size:
            return None
        node = self._root
        while node.children is not None:
            node = node.children[-1]
        return self._at(node.keys[-1])

    def _at(self, key: Key) -> tuple[Key, Entry]:
        return key, next(iter(self._entries[key]))

    def _change(self, key: Key, change: Number) -> None:
        """Add to the sum of a key that is there."""
        if not change:
            return
        node: Node | None = self._root
        while node is not None:
            at = bisect_right(node.keys, key) - 1
            sums, children = node.sums, node.children
            before = sums[at]
            sums[at] = after = before + change
            node.within = None
            node = None if children is None else children[at]
        self._negative += (after < 0) - (before < 0)

    def _insert(self, key: Key, value: Number) -> None:
        """Add a key that is not there."""
        self._negative += value < 0
        node, path = self._root, []
        while node.children is not None:
            at = bisect_right(node.keys, key) - 1
            if at < 0:
                at, node.keys[0] = 0, key
            node.sums[at] += value
            node.within = None
            path.append((node, at))
            node = node.children[at]
        at = bisect_right(node.keys, key)
        node.keys.insert(at, key)
        node.sums.insert(at, value)
        node.within = None
        while len(node.keys) > FULL:
            halves = [node, node.split()]
            if not path:
                self._root = Node([], [], [])
                self._root.replace(0, 0, halves)
                return
            node, at = path.pop()
            node.replace(at, at + 1, halves)

    def _remove(self, key: Key, value: Number) -> None:
        """Take away a key whose sum is ``value``."""
        self._negative -= value < 0
        node, path = self._root, []
        while node.children is not None:
            at = bisect_right(node.keys, key) - 1
            node.sums[at] -= value
            node.within = None
            path.append((node, at))
            node = node.children[at]
        at = bisect_left(node.keys, key)
        del node.keys[at], node.sums[at]
        node.within = None
        while path:
            parent, at = path.pop()
            if len(node.keys) < SPARSE:
                parent.merge(at)
            else:
                parent.keys[at] = node.keys[0]
            node = parent
        if node.children is not None and len(node.children) == 1:
            self._root = node.children[0]


EMPTY = Tree()  # the tree of a slice that has no entries; nobody writes to it


class Ordered:
    """One tree for each slice of a store's entries: built from the content, then told of what changed.

    A slice is the entries with the same values at ``slice_at``; its tree is ordered by the column at ``key_at`` and
    leaves out the entries that have NULL there. Who writes to the content sets ``touched[key]``, a store that comes or
    goes as a whole each of its keys.
    """

    def __init__(self, content: dict[Held, Any], slice_at: Positions, key_at: int) -> None:
        self._content, self._key_at = content, key_at
        self._bare = len(slice_at) == 1
        self._slice_of = _picker(slice_at)
        self._trees: dict[Any, Tree] = {}
        self._indexes: dict[Positions, tuple[Callable[[Held], Any], Index]] = {}
        self.touched: dict[Held, None] = dict.fromkeys(content)  # since the trees were last looked at

    def tree(self, bound: Any) -> Tree:
        """The tree of the slice that has ``bound`` at ``slice_at``: the value at one, a tuple of those at several."""
        if self.touched:
            self._refresh()
        return self._trees.get(bound, EMPTY)

    def slices(self, given_at: Positions, given: Any) -> list[Held]:
        """The slices, as tuples over ``slice_at``, that have ``given`` at the positions ``given_at`` of those tuples.

        ``given`` is the value at one position, a tuple of those at several, () at none.
        """
        if self.touched:
            self._refresh()
        if given_at not in self._indexes:
            pick, index = self._indexes[given_at] = _picker(given_at), Index()
            for slice_ in map(self._whole, self._trees):
                index.setdefault(pick(slice_), {})[slice_] = None
        return list(self._indexes[given_at][1].get(given, ()))

    def _refresh(self) -> None:
        content, trees = self._content, self._trees
        for held in self.touched:
            key = held[self._key_at]
            if key is None:
                continue
            bound, value = self._slice_of(held), content.get(held)
            tree = trees.get(bound)
            if value is not None:
                if tree is None:
                    tree = self._open(bound)
                tree.set(key, held, value)
            elif tree is not None:
                tree.erase(key, held)
                if not tree:
                    self._close(bound)
        self.touched.clear()

    def _open(self, bound: Any) -> Tree:
        self._trees[bound] = tree = Tree()
        slice_ = self._whole(bound)
        for pick, index in self._indexes.values():
            index.setdefault(pick(slice_), {})[slice_] = None
        return tree

    def _close(self, bound: Any) -> None:
        del self._trees[bound]
        slice_ = self._whole(bound)
        for pick, index in self._indexes.values():
            given = pick(slice_)
            slices = index[given]
            del slices[slice_]
            if not slices:
                del index[given]

    def _whole(self, bound: Any) -> Held:
        return (bound,) if self._bare else bound


def _picker(positions: Positions) -> Callable[[Held], Any]:
    return itemgetter(*positions) if positions else lambda held: ()


def _leading(values: list[Any], holds: Callable[[Any], bool], first: bool) -> int:
    """How many values come before ``holds``, which is ``first`` and then no longer, changes."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) >> 1
        if holds(values[middle]) == first:
            low = middle + 1
        else:
            high = middle
    return low


def _sum(node: Node, up: Bound, down: Bound) -> Number:
    """Only the first child may hold keys that are not yet up, only the last keys that are no longer down."""
    start = 0 if up is None else _leading(node.keys, up, False)
    stop = len(node.keys) if down is None else _leading(node.keys, down, True)
    if node.children is None:
        return sum(node.sums[start:stop])
    first, last = start - 1, stop - 1
    if first > last or not stop:
        return 0
    if first == last:
        return _sum(node.children[first], up, down)
    total = sum(node.sums[start : stop if down is None else last])
    if start:
        total += _sum(node.children[first], up, None)
    if down is not None:
        total += _sum(node.children[last], None, down)
    return total


def _collect(node: Node, up: Bound, down: Bound, keys: list[Key]) -> None:
    """The keys with up(key) ∧ down(key), in order."""
    start = 0 if up is None else _leading(node.keys, up, False)
    stop = len(node.keys) if down is None else _leading(node.keys, down, True)
    if node.children is None:
        keys += node.keys[start:stop]
        return
    first, last = max(start - 1, 0), stop - 1
    for at in range(first, stop):
        _collect(node.children[at], up if at == first else None, down if at == last else None, keys)


def _flip(node: Node, after: bool, holds: Callable[[Number], bool]) -> list[Key]:
    """The key whose adding changes what ``holds`` says of the running sum: at most one, where no key's is negative."""
    first = holds(0)
    if holds(sum(node.sums)) == first:
        return []
    before: Number = 0
    while True:
        sums = reversed(node.sums) if after else node.sums
        running = list(accumulate(sums, initial=before))
        added = _leading(running, holds, first)
        before = running[added - 1]
        at = -added if after else added - 1
        if node.children is None:
            return [node.keys[at]]
        node = node.children[at]


def _flips(node: Node, before: Number, after: bool, holds: Callable[[Number], bool], flips: list[Key]) -> None:
    """The keys whose adding changes what ``holds`` says of the running sum, which is ``before`` without this node.

    ``holds`` is monotone: where it says the same of a child's least and greatest running sum, it changes nowhere there.
    """
    if node.children is None:
        held = holds(before)
        for at in range(-1, -len(node.keys) - 1, -1) if after else range(len(node.keys)):
            before += node.sums[at]
            if holds(before) != held:
                held = not held
                flips.append(node.keys[at])
        return
    for at in range(-1, -len(node.keys) - 1, -1) if after else range(len(node.keys)):
        total, child = node.sums[at], node.children[at]
        least, greatest = child.reach()
        if after:
            least, greatest = total - greatest, total - least
        if holds(before + least) != holds(before + greatest):
            _flips(child, before, after, holds, flips)
        before += total
