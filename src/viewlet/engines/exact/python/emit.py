"""Loop nests as Python source, meant to be read: loops, tests, and changes of dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from typing_extensions import assert_never

from viewlet.algebra.query import Atom, Compare, Delta, Rel, View, rename
from viewlet.algebra.terms import Const, Var, free
from viewlet.engines.exact.python.terms import PYTHON, Terms, Text, comparable, tuple_text
from viewlet.loops.infer import Kinds
from viewlet.loops.names import columns_of
from viewlet.loops.steps import (
    Add,
    Block,
    EachGroup,
    EachSlice,
    Emit,
    Extremum,
    Get,
    Group,
    InRun,
    Let,
    Loop,
    Nonzero,
    Order,
    Product,
    Put,
    RangeSum,
    Runs,
    Same,
    Step,
    Test,
    Total,
)
from viewlet.program.kinds import COUNT, DOUBLE, Kind

Bounds = Mapping[str, tuple[int, int]]
Orders = Mapping[str, tuple[str, tuple[int, ...], int]]  # the name of an ordered index ↦ its store, slices and key


@dataclass(frozen=True, slots=True)
class Shared:
    """An expression that may be needed more than once. ``is_atom``: a name of it would be no shorter."""

    text: str
    variables: frozenset[str]
    is_atom: bool


@dataclass(frozen=True, slots=True)
class Named:
    """The name of an expression, for as long as its variables keep their values."""

    name: str
    variables: frozenset[str]


@dataclass
class Source(Terms):
    """Lines of Python for one trigger.

    ``labels``: what relations and views are called in Python. ``bounds``: the least and greatest value of views that
    have a limit. ``collected``: for views whose change is put aside until it is complete, where. ``indexes``: those
    that the code goes by. ``orders``: the ordered ones of the program so far.
    """

    program: Kinds = field(default_factory=Kinds)
    labels: Mapping[str, str] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    collected: dict[str, str] = field(default_factory=dict)
    indexes: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    orders: dict[str, tuple[str, tuple[int, ...], int]] = field(default_factory=dict)
    known: list[dict[str, Named]] = field(default_factory=lambda: [{}])  # expressions that have a name, by scope
    shared: int = 0

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    # -- expressions that are computed once ----------------------------------------------------------------------------

    @contextmanager
    def scope(self) -> Iterator[None]:
        self.known.append(dict(self.known[-1]))
        yield
        self.known.pop()

    def once(self, depth: int, expression: Shared) -> str:
        """A name for an expression, computed here unless it was before."""
        text = expression.text
        if expression.is_atom:
            return text
        if text not in self.known[-1]:
            self.shared += 1
            self.known[-1][text] = Named(f"T_{self.shared}", expression.variables)
            self.add(depth, f"T_{self.shared} = {text}")
        return self.known[-1][text].name

    def assigned(self, variable: str) -> str:
        """The name of a variable that gets a new value: what was computed from the old one is forgotten."""
        for scope in self.known:
            for text in [text for text, named in scope.items() if variable in named.variables]:
                del scope[text]
        return self.name(variable)

    def shared_key(self, variables: tuple[str, ...], kinds: Iterable[Kind]) -> Shared:
        return Shared(self.key(variables, kinds), frozenset(variables), is_atom=not variables)

    def shared_product(self, product: Product, kind: Kind) -> Shared:
        value = self.product(product)
        text = value.to(kind, True)
        is_atom = value.units is not None or (value.is_name and text == value.text)
        return Shared(text, frozenset(v for f in product for v in free(f.term)), is_atom)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def block(self, block: Block, depth: int) -> None:
        for step in block:
            self.step(step, depth)

    def inside(self, block: Block, depth: int) -> None:
        with self.scope():
            self.block(block, depth)

    def step(self, step: Step, depth: int) -> None:
        match step:
            case Let(var, term, plain):
                text = self.term(term, plain).to(self.kinds[var], plain)
                self.add(depth, f"{self.assigned(var)} = {text}")
            case Same() | Test():
                self.tests(step, depth)
            case Get():
                self.get(step, depth)
            case Loop():
                self.loop(step, depth)
            case EachSlice():
                self.each_slice(step, depth)
            case RangeSum() | Runs() | Extremum():
                self.ordered_read(step, depth)
            case Total(var, body):
                self.add(depth, f"{self.assigned(var)} = 0")
                self.block(body, depth)
            case Add(var, product):
                self.add(depth, f"{self.assigned(var)} += {self.product(product).to(self.kinds[var], True)}")
            case Nonzero(var, body):
                self.add(depth, f"if {self.value(var).text}:")
                self.inside(body, depth + 1)
            case Group(name, body):
                self.add(depth, f"{self.assigned(name)} = {{}}")
                self.block(body, depth)
            case Put(name, keys, product):
                key = self.shared_key(keys, [self.kinds[k] for k in keys])
                self.collect(depth, self.name(name), key, self.product(product).to(self.kinds[name], True))
            case EachGroup(name, keys, body, value):
                names = "".join(f"{self.assigned(k)}, " for k in keys)
                multiplicity = self.assigned(value) if value else "GROUP_M"
                self.add(depth, f"for ({names.rstrip()}), {multiplicity} in {self.name(name)}.items():")
                self.add(depth + 1, f"if {multiplicity}:")
                self.inside(body, depth + 2)
            case Emit(key, product, view):
                self.emit(depth, view, key, product)
            case _:
                assert_never(step)

    def tests(self, step: Test | Same, depth: int) -> None:
        """Tests directly inside each other are one ``if``: Python allows a hundred levels, SQL more conjuncts."""
        conditions = [self.condition(step)]
        while len(step.body) == 1 and isinstance(step.body[0], (Test, Same)):
            step = step.body[0]
            conditions.append(self.condition(step))
        self.add(depth, f"if {' and '.join(conditions)}:")
        self.inside(step.body, depth + 1)

    def condition(self, step: Test | Same) -> str:
        if isinstance(step, Same):
            sides, plain = [self.value(step.var), self.term(step.term, step.plain)], False
            return _compared("=", sides, plain)
        return self.compared(step.compare, step.nullable, step.plain)

    def compared(self, compare: Compare, nullable: bool, plain: bool) -> str:
        op, terms = compare.op, (compare.left, compare.right)
        sides = [self.term(t, plain) for t in terms]
        if not nullable:
            return _compared(op, sides, True)
        if all(isinstance(t, Var) or (isinstance(t, Const) and t.value is not None) for t in terms):
            solid = [f"{s.text} is not None" for s, t in zip(sides, terms, strict=True) if isinstance(t, Var)]
            return " and ".join([*solid, _compared(op, sides, True)])
        return f"{self.operator(op, sides, False).text} is True"

    def get(self, step: Get, depth: int) -> None:
        """A lookup; a view cache is asked for the map of its inputs first."""
        source, kinds = step.source, self.program.columns[step.source.name]
        n = len(source.inputs) if isinstance(source, View) else 0
        names, store = columns_of(source), self.map_name(source)
        key = self.once(depth, self.shared_key(names[n:], kinds[n:]))
        get = f"{store}[{self.key(names[:n], kinds[:n])}].content.get" if n else f"GET_{store}"
        value = self.assigned(step.value)
        self.count(source, step.value)
        self.add(depth, f"{value} = {get}({key})")
        self.add(depth, f"if {value} is not None:")
        self.inside(step.body, depth + 1)

    def count(self, source: Atom, value: str) -> None:
        """Remember that a multiplicity counts rows and is no sum of their values."""
        if self.program.multiplicity(source) == COUNT:
            self.counted.add(value)

    # -- loops ---------------------------------------------------------------------------------------------------------

    def loop(self, step: Loop, depth: int) -> None:
        source, entry = step.source, f"KEY_{depth}"
        n = len(source.inputs) if isinstance(source, View) else 0
        names, kinds = columns_of(source)[n:], self.program.columns[source.name][n:]
        at = tuple(i for i, name in enumerate(names) if name in step.bound)
        bound = self.bound(names, kinds, at)
        value, store = self.assigned(step.value), self.map_name(source)
        self.count(source, step.value)
        if step.order is not None:
            self.in_ranges(step, depth)
            self.add(depth, f"for {entry}, {value} in FOUND_{depth}:")
        elif n:
            store = f"{store}[{self.key(columns_of(source)[:n], self.program.columns[source.name][:n])}]"
            entries = f"{store}.slice({at}, {bound})" if at else f"{store}.content.items()"
            self.add(depth, f"for {entry}, {value} in {entries}:")
        elif at:
            index = f"AT_{'_'.join(map(str, at))}_{store}"
            self.indexes[index] = store, at
            self.add(depth, f"for {entry} in {index}({bound}, ()):")
        else:
            self.add(depth, f"for {entry}, {value} in {store}.items():")
        with self.scope():
            cells = [] if n or not at or step.order is not None else [(step.value, f"{value} = {store}[{entry}]")]
            cells += self.cells(source, entry, [(i, names[i], kinds[i]) for i in range(len(names)) if i not in at])
            self.remember(source, entry, names, kinds)
            start, uses = len(self.lines), dict(self.uses)
            self.repeated(source, entry, names, kinds, at, depth + 1)
            self.block(step.body, depth + 1)
            used = [f"{'    ' * (depth + 1)}{line}" for name, line in cells if self.uses[name] > uses.get(name, 0)]
            self.lines[start:start] = used

    def bound(self, names: tuple[str, ...], kinds: tuple[Kind, ...], at: tuple[int, ...]) -> str:
        """What an index goes by: a value, or a tuple of several."""
        if len(at) == 1:
            return self.value(names[at[0]]).to(kinds[at[0]], plain=False)
        return self.key([names[i] for i in at], [kinds[i] for i in at])

    def cells(self, source: Atom, entry: str, free: list[tuple[int, str, Kind]]) -> list[tuple[str, str]]:
        """For each variable that an entry gives a value, the line that does so."""
        lines: dict[str, str] = {}
        for i, name, kind in free:
            if name not in lines:
                cell = self.cell(source, entry, i, kind).to(self.kinds[name], plain=False)
                lines[name] = f"{self.assigned(name)} = {cell}"
        return list(lines.items())

    def cell(self, source: Atom, entry: str, i: int, kind: Kind) -> Text:
        return Text(f"EXACT({entry}[{i}])" if _is_float(source, kind) else f"{entry}[{i}]", kind)

    def repeated(
        self, source: Atom, entry: str, names: tuple[str, ...], kinds: tuple[Kind, ...], at: tuple[int, ...], depth: int
    ) -> None:
        """R(x, x) where x has no value: a test."""
        for i, name in enumerate(names):
            if i not in at and name in names[:i]:
                other = self.cell(source, entry, i, kinds[i])
                self.add(depth, f"if not ({_compared('=', [self.value(name), other], False)}):")
                self.add(depth + 1, "continue")

    def remember(self, source: Atom, entry: str, names: tuple[str, ...], kinds: tuple[Kind, ...]) -> None:
        """The entry's own key is a tuple that need not be made again, unless it has numbers that views do not hold."""
        if all(self.kinds[n] == kind and not _is_float(source, kind) for n, kind in zip(names, kinds, strict=True)):
            self.known[-1][tuple_text([self.name(name) for name in names])] = Named(entry, frozenset(names))

    # -- ordered reads -------------------------------------------------------------------------------------------------

    def order(self, source: View, bound: frozenset[str], key: str) -> tuple[str, str]:
        """The name of an ordered index, and the slice of it that has the bound values."""
        names, kinds = source.outputs, self.program.columns[source.name]
        at = tuple(i for i, name in enumerate(names) if name in bound)
        return self.order_of(source, at, names.index(key)), self.bound(names, kinds, at) if at else "()"

    def order_of(self, source: View, slice_at: tuple[int, ...], key_at: int) -> str:
        store = self.map_name(source)
        name = f"BY_{key_at}_AT_{'_'.join(map(str, slice_at))}_{store}"
        self.orders[name] = store, slice_at, key_at
        return name

    def ordered_read(self, step: RangeSum | Runs | Extremum, depth: int) -> None:
        match step:
            case RangeSum():
                self.range_sum(step, depth)
            case Runs():
                self.runs(step, depth)
            case Extremum():
                self.extremum(step, depth)

    def range_sum(self, step: RangeSum, depth: int) -> None:
        order, bound = self.order(step.source, step.bound, step.order.key)
        total = self.assigned(step.var)
        self.add(depth, f"{total} = 0")
        self.add(depth, f"TREE_{depth} = {order}.tree({bound})")
        for inner, up, down in self.ranges(step.order, depth):
            self.add(inner, f"{total} += TREE_{depth}.sum({up}, {down})")

    def in_ranges(self, step: Loop, depth: int) -> None:
        """The entries in the ranges of a loop, as a list: its body may change what it reads."""
        assert isinstance(step.source, View)
        assert step.order is not None
        order, bound = self.order(step.source, step.bound, step.order.key)
        self.add(depth, f"FOUND_{depth} = []")
        self.add(depth, f"TREE_{depth} = {order}.tree({bound})")
        for inner, up, down in self.ranges(step.order, depth):
            self.add(inner, f"FOUND_{depth} += TREE_{depth}.range({up}, {down})")

    def ranges(self, order: Order, depth: int) -> Iterator[tuple[int, str, str]]:
        """For each range, inside the loops over its runs: the depth, and the predicates that bound it."""
        for cuts in order.ranges:
            inner, up, down = depth, list[str](), list[str]()
            for cut in cuts:
                if isinstance(cut, InRun):
                    inside, outside = self.run(cut, inner)
                    (up if cut.up else down).append(inside)
                    (down if cut.up else up).append(outside)
                    inner += 1
                else:
                    text = self.compared(cut.compare, cut.nullable, cut.plain)
                    (up if cut.up else down).append(text if cut.holds else f"not ({text})")
            yield inner, self.predicate(order.key, up), self.predicate(order.key, down)

    def run(self, cut: InRun, depth: int) -> tuple[str, str]:
        """A loop over runs, and the conditions that a key is in the run: [C(inside, k)] and not [C(outside, k)]."""
        sides = []
        for side in ("inside", "outside"):
            name = f"{cut.runs}.{side}"
            self.kinds = {**self.kinds, name: self.kinds[cut.inner]}
            compare = rename(cut.compare, {cut.inner: name})
            assert isinstance(compare, Compare)
            sides.append((self.assigned(name), self.compared(compare, cut.nullable, cut.plain)))
        (inside, begun), (outside, ended) = sides
        self.add(depth, f"for HAS_{inside}, {inside}, HAS_{outside}, {outside} in {self.name(cut.runs)}:")
        return f"(not HAS_{inside} or {begun})", f"not (HAS_{outside} and {ended})"

    def predicate(self, variable: str, conditions: list[str]) -> str:
        return f"lambda {self.name(variable)}: {' and '.join(conditions)}" if conditions else "None"

    def runs(self, step: Runs, depth: int) -> None:
        order, bound = self.order(step.source, step.bound, step.key)
        test = self.compared(step.test.compare, step.test.nullable, step.test.plain)
        holds = self.predicate(step.total, [test])
        self.add(depth, f"{self.assigned(step.var)} = {order}.tree({bound}).runs({step.after}, {holds})")

    def each_slice(self, step: EachSlice, depth: int) -> None:
        names, kinds = step.source.outputs, self.program.columns[step.source.name]
        at = tuple(i for i, name in enumerate(names) if name != step.key and name not in step.summed)
        given = tuple(i for i in at if names[i] in step.bound)
        order = self.order_of(step.source, at, names.index(step.key))
        bound = self.bound(names, kinds, given) if given else "()"
        self.add(depth, f"for SLICE_{depth} in {order}.slices({tuple(at.index(i) for i in given)}, {bound}):")
        with self.scope():
            for i, position in enumerate(at):
                if position not in given:
                    name = names[position]
                    cell = Text(f"SLICE_{depth}[{i}]", kinds[position]).to(self.kinds[name], plain=False)
                    self.add(depth + 1, f"{self.assigned(name)} = {cell}")
            self.block(step.body, depth + 1)

    def extremum(self, step: Extremum, depth: int) -> None:
        assert step.place is None, "what has a place is read by engines/results.py"
        order, bound = self.order(step.source, step.bound, step.key)
        end = "last" if step.greatest else "first"
        self.add(depth, f"{self.assigned(step.var)} = ({order}.tree({bound}).{end}() or (None,))[0]")

    # -- changes -------------------------------------------------------------------------------------------------------

    def emit(self, depth: int, view: str, key: tuple[str, ...], product: Product) -> None:
        n = len(self.program.columns[view]) - len(key)
        m = self.shared_product(product, self.program.values[view])
        at = self.shared_key(key, self.program.columns[view][n:])
        if view in self.collected:
            self.collect(depth, self.collected[view], at, m.text)
        else:
            names = self.once(depth, at), self.once(depth, m)
            self.change(depth, f"VIEW_{self.labels[view]}", *names, self.bounds.get(view))

    def collect(self, depth: int, into: str, at: Shared, m: str) -> None:
        key = self.once(depth, at)
        self.add(depth, f"{into}[{key}] = {into}.get({key}, 0) + {m}")

    def change(self, depth: int, store: str, key: str, m: str, bounds: tuple[int, int] | None = None) -> None:
        """R(t⃗) += m, in place: a method of the store is called only where a key comes or goes."""
        self.add(depth, f"N = GET_{store}({key})")
        self.add(depth, "if N is None:")
        self.add(depth + 1, f"CREATE_{store}({key}, {m})")
        if bounds is not None:
            self.add(depth + 1, f"N = {m}")
        self.add(depth, f"elif N := N + {m}:")
        self.add(depth + 1, f"{store}[{key}] = N")
        for name in sorted(name for name, (ordered, _, _) in self.orders.items() if ordered == store):
            self.add(depth + 1, f"TOUCHED_{name}[{key}] = None")
        self.add(depth, "else:")
        self.add(depth + 1, f"DROP_{store}({key})")
        if bounds is not None:
            self.add(depth, f"if not {bounds[0]} <= N <= {bounds[1]}:")
            self.add(depth + 1, f"SUSPECT_{store}({key})")

    def map_name(self, source: Atom) -> str:
        """Capitals, which no variable gets: see :meth:`Terms.name`."""
        kind = {Rel: "TABLE", Delta: "DELTA", View: "VIEW"}[type(source)]
        return f"{kind}_{self.labels[source.name]}"


def _is_float(source: Atom, kind: Kind) -> bool:
    """Views hold exact numbers; in a row, a DOUBLE is a ``float``."""
    return kind == DOUBLE and not isinstance(source, View)


def _compared(op: str, sides: list[Text], plain: bool) -> str:
    common = comparable([s.kind for s in sides])
    left, right = (s.compared(common, plain) for s in sides)
    return f"{left} {PYTHON.get(op, op)} {right}"
