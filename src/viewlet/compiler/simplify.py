"""Clean-up that keeps the meaning, run after every delta and between the rules of Figure 2 (Examples 4 and 7)."""

from __future__ import annotations

from viewlet.algebra.query import (
    ONE,
    ZERO,
    Bind,
    Compare,
    Delta,
    Exists,
    Join,
    Query,
    Rel,
    Sum,
    Union,
    Value,
    View,
    branches,
    children,
    factors,
    inputs,
    join,
    map_children,
    ordered_join,
    outputs,
    reads_update,
    relations,
    rename,
    scale,
    split_coefficient,
    substitute,
    sum_,
    union,
    variables,
)
from viewlet.algebra.remembered import remembered
from viewlet.algebra.rewrite import Rule, Trace, rewrite, rule
from viewlet.algebra.sessions import is_sessions, sessions_of
from viewlet.algebra.terms import COMPARISONS, NULL, ONE_TERM, TRUE, ZERO_TERM, Const, Op, Term, Var, free, op
from viewlet.algebra.turns import is_turns
from viewlet.compiler.constants import known_constant
from viewlet.compiler.context import Context
from viewlet.compiler.normal_forms import Known, NormalForms
from viewlet.compiler.padding import is_lookup, stay_whole

Computed = tuple[str, Term, Bind]  # x, t and the binding x := t


@remembered(1 << 16)
def columns(q: Query) -> frozenset[str]:
    """Variables that stand in an atom or name a value, where only a variable can be put."""
    match q:
        case Rel(_, names) | Delta(_, names):
            return frozenset(names)
        case View(_, ins, outs):
            return frozenset(ins + outs)
        case _:
            own = frozenset({q.var}) if isinstance(q, Bind) else q.group if isinstance(q, Sum) else frozenset()
            return own.union(*map(columns, children(q)))


def without(parts: tuple[Query, ...], removed: Query) -> Query:
    """The product of ``parts`` less one occurrence of ``removed``."""
    i = parts.index(removed)
    return ordered_join(parts[:i] + parts[i + 1 :])


def product_under(q: Query) -> tuple[frozenset[str], tuple[Query, ...]] | None:
    """Q as Sum_A(f₁ ⋈ f₂ ⋈ …)."""
    match q:
        case Sum(group, inner):
            return group, factors(inner)
        case Join(parts):
            return outputs(q), parts
    return None


# -- sums and products -------------------------------------------------------------------------------------------------


@rule("§5.1: Sum_A(Q₁ + Q₂) = Sum_A(Q₁) + Sum_A(Q₂)", Sum)
def sum_over_union(q: Query, context: Context) -> Query | None:
    match q:
        case Sum(group, Union(parts) as inner):
            kept = group | inputs(inner)  # what only some branches give is not theirs to sum out
            return union(*(sum_(kept & outputs(b), b) for b in parts))
    return None


@rule("Figure 2 (2): Q_L ⋈ (Q₁ + Q₂ + …) ⋈ Q_R = Q_L ⋈ Q₁ ⋈ Q_R + Q_L ⋈ Q₂ ⋈ Q_R + …", Join)
def polynomial_expansion(q: Query, context: Context) -> Query | None:
    match q:
        case Join(parts):
            whole = stay_whole(parts)
            for f in parts:
                if isinstance(f, Union) and not (whole and is_lookup(f)) and not is_turns(f):
                    rest = without(parts, f)
                    return union(*(join(rest, b) for b in f.branches))
    return None


@rule("§5.1: Sum_A(Q₁ ⋈ Sum_B(Q₂)) = Sum_A(Q₁ ⋈ Q₂), local variables named apart", Sum, Join)
def flatten_sums(q: Query, context: Context) -> Query | None:
    match q:
        case Sum(group, Join(parts)):
            for f in parts:
                if isinstance(f, Sum):
                    rest = without(parts, f)
                    return sum_(group, join(rest, locals_apart(f, variables(rest) | group).query))
        case Join(parts):  # an update must come to stand beside the relations that it meets
            for f in parts:
                if isinstance(f, Sum) and reads_update(f) and relations(f):
                    rest = without(parts, f)
                    if any(map(is_loop, factors(rest))):
                        return sum_(outputs(q), join(rest, locals_apart(f, variables(rest)).query))
    return None


def is_loop(f: Query) -> bool:
    """Gives tuples of its own, rather than a function of the others'."""
    return not isinstance(f, (Value, Compare, Bind))


def locals_apart(q: Sum, taken: frozenset[str]) -> Sum:
    """Q with its summed-out variables renamed away from ``taken``."""
    clashes = (variables(q.query) - q.group - inputs(q)) & taken
    if not clashes:
        return q
    names, used = {}, set(taken | variables(q))
    for name in sorted(clashes):
        n = next(i for i in range(1, len(used) + 2) if f"{name}_{i}" not in used)
        names[name] = f"{name}_{n}"
        used.add(names[name])
    renamed = rename(q.query, names)
    return Sum(q.group, renamed)


@rule("§5.1 generalised distributive law: {⟨⟩ ↦ f₁·f₂} = {⟨⟩ ↦ f₁} ⋈ {⟨⟩ ↦ f₂}", Join, Sum)
def split_product(q: Query, context: Context) -> Query | None:
    match q:
        case Join(parts) | Sum(_, Join(parts)):
            if not any(map(_split, parts)):
                return None
            product = join(*(_split(f) or f for f in parts))
            return sum_(q.group, product) if isinstance(q, Sum) else product
        case Sum(group, Value() as f):
            piece = _split(f)
            return None if piece is None else sum_(group, piece)
    return None


@remembered(1 << 16)
def _split(f: Query) -> Query | None:
    """{a·b} as a ⋈ b, and {a/b} as a ⋈ {1/b}; a ring value, so not for what ``Bind`` names."""
    match f:
        case Value(Op("*", (a, b))):
            return join(Value(a), Value(b))
        case Value(Op("/", (a, b))) if a != ONE_TERM:
            return join(Value(a), Value(op("/", ONE_TERM, b)))
    return None


@rule("§5.1 generalised distributive law: Sum_A(f ⋈ Q) = f ⋈ Sum_A(Q) where f uses bound variables only", Sum)
def pull_out_of_sum(q: Query, context: Context) -> Query | None:
    match q:
        case Sum(group, Join(parts)):
            out = [f for f in parts if isinstance(f, (Value, Compare)) and inputs(f) <= context.bound]
            if out and not is_sessions(q):  # J stays whole: its changes are known
                rest = join(*(f for f in parts if f not in out))
                return join(*out, sum_(group & outputs(rest), rest))
    return None


@rule("[c₁ θ c₂] is 1 or 0, [t < t] and [t θ NULL] are 0", Compare)
def constant_comparison(q: Query, context: Context) -> Query | None:
    match q:
        case Compare(name, Const(left), Const(right)):
            holds = left is not None and right is not None and COMPARISONS[name](left, right)
            return ONE if holds else ZERO
        case Compare("<" | ">" | "<>", left, right) if left == right:
            return ZERO
        case Compare(_, left, right) if NULL in (left, right):
            return ZERO
    return None


# -- bindings ----------------------------------------------------------------------------------------------------------


@rule("Sum_A((x := Q) ⋈ R) = Sum_A(R) where x is used nowhere: a binding has multiplicity 1", Sum)
def drop_unused_binding(q: Query, context: Context) -> Query | None:
    match q:
        case Sum(group, Join(parts)):
            for f in parts:
                if isinstance(f, Bind) and f.var not in group | context.bound:
                    rest = without(parts, f)
                    if f.var not in variables(rest):
                        return sum_(group & outputs(rest), rest)
        case Sum(group, Bind(var, _)) if var not in group | context.bound:
            return ONE
    return None


@rule("Sum_A(((w := t₁) + … + (w := tₙ)) ⋈ R) = n·Sum_A(R) where w is used nowhere", Sum)
def drop_unused_turns(q: Query, context: Context) -> Query | None:
    match q:
        case Sum(group, Join(parts)):
            for f in parts:
                if is_turns(f) and not outputs(f) & (group | context.bound):
                    rest = without(parts, f)
                    if not outputs(f) & variables(rest):
                        return scale(len(branches(f)), sum_(group & outputs(rest), rest))
    return None


@rule("Example 4: {⟨x: t⟩} ⋈ Q = Q with x replaced by t", Sum, Join)
def unify_binding(q: Query, context: Context) -> Query | None:
    product = product_under(q)
    if product is None:
        return None
    group, parts = product
    computed: list[Computed] = [
        (f.var, f.query.term, f) for f in parts if isinstance(f, Bind) and isinstance(f.query, Value)
    ]
    if computed and not isinstance(q, Sum):
        used = _used(parts)
        computed = [c for c in computed if c[0] in used]  # the others only give a value a name
    after = _unify_given(computed, parts, group, context)
    if after is not None and after != q:
        return after
    for x, term, f in computed:
        after = _unify(x, term, without(parts, f), group, context)
        if after is not None and after != q:
            return after
    return None


def _used(parts: tuple[Query, ...]) -> set[str]:
    """Every variable that has another use than to be the x of one binding x := t."""
    named: set[str] = set()
    used: set[str] = set()
    for f in parts:
        if isinstance(f, Bind) and isinstance(f.query, Value):
            used |= named & {f.var} | inputs(f)
            named.add(f.var)
        else:
            used |= variables(f)
    return used


def _unify_given(
    computed: list[Computed], parts: tuple[Query, ...], group: frozenset[str], context: Context
) -> Query | None:
    """:func:`_unify` at once of all x := t with t a bound variable: the delta of R has one for each column of R.

    Not where some binding is a test, since its variable has a value already.
    """
    given = [f for _, term, f in computed if isinstance(term, Var) and term.name in context.bound]
    named = [f.var for f in parts if isinstance(f, Bind)]
    if len(given) < 2 or len(set(named)) < len(named) or not context.bound.isdisjoint(named):
        return None
    rest = ordered_join(tuple(f for f in parts if f not in given))
    by = {x: term for x, term, f in computed if f in given}
    after = substitute(rest, by)
    kept = ((group - by.keys()) | context.bound) & outputs(after)
    return join(*(f for f in given if f.var in group), sum_(kept, after))


def _unify(x: str, term: Term, rest: Query, group: frozenset[str], context: Context) -> Query | None:
    """Sum_A((x := t) ⋈ rest) without x in rest, or None where t cannot stand for x."""
    if term == Var(x):
        return sum_(group & outputs(rest), rest)
    if x in context.bound or free(term) & (named_after(x, rest) | {x}):
        return None
    if not isinstance(term, Var) and x in columns(rest):
        return None
    from_outside = free(term) - outputs(rest)  # parameters, correlated variables: once columns, they stay visible
    after = substitute(rest, {x: term})
    kept = (group - {x}) | (from_outside & outputs(after)) | (outputs(after) & context.bound)
    if x not in group:
        return sum_(kept & outputs(after), after)
    if free(term) <= context.bound:  # t means the same outside the Sum
        return join(Bind(x, Value(term)), sum_(kept & outputs(after), after))
    if isinstance(term, Var) and term.name not in group and term.name in outputs(rest):
        return sum_(group, rename(rest, {term.name: x}))
    if x not in variables(rest):
        return None
    return sum_(kept | {x}, join(Bind(x, Value(term)), after))


def named_after(x: str, q: Query) -> frozenset[str]:
    """The variables that bindings of the product Q compute from x: none of them can take x's place."""
    dependent = frozenset({x})
    while True:
        more = frozenset(f.var for f in factors(q) if isinstance(f, Bind) and inputs(f) & dependent) - dependent
        if not more:
            return dependent - {x}
        dependent |= more


@rule("Example 7: [y = z] ⋈ Q = Q with z replaced by y", Sum, Join)
def unify_equality(q: Query, context: Context) -> Query | None:
    product = product_under(q)
    if product is None:
        return None
    group, parts = product
    for f in parts:
        x, y = _equal_variables(f)
        if x != y:
            rest = without(parts, f)
            after = _equate(x, y, rest, group, context) or _equate(y, x, rest, group, context)
            if after is not None:
                return after
    return None


def _equal_variables(f: Query) -> tuple[str, str]:
    """x and y of [y = z], and of the test that they are equal or both NULL (IS NOT DISTINCT FROM)."""
    match f:
        case Compare("=", Var(x), Var(y)):
            return x, y
        case Compare("=", Op("coalesce", (Op("=", (Var(x), Var(y)) as pair), both)), right) if right == TRUE:
            return (x, y) if both == op("and", *(op("is_null", side) for side in pair)) else ("", "")
    return "", ""


def _equate(x: str, y: str, rest: Query, group: frozenset[str], context: Context) -> Query | None:
    """Sum_A([x = y] ⋈ rest) with x replaced by y, or None where x is not rest's to rename.

    A y that nothing here produces comes from outside (a parameter, a correlated variable): it stays visible.
    """
    produced = outputs(rest)
    if x not in produced or x in context.bound or y in named_after(x, rest) or x in named_after(y, rest):
        return None
    renamed = rename(rest, {x: y})
    kept = group | ({y} - produced)
    if x not in group:
        return sum_(kept & outputs(renamed), renamed)
    return sum_(kept, join(Bind(x, Value(Var(y))), renamed)) if y in group | context.bound else None


# -- Exists ------------------------------------------------------------------------------------------------------------


@rule(
    "Exists(c·Q₁ ⋈ Q₂) = Exists(Q₁) ⋈ Exists(Q₂): a product is 0 only where a factor is; 0/1 factors are their own",
    Exists,
)
def split_exists(q: Query, context: Context) -> Query | None:
    match q:
        case Exists(Exists() | Compare() | Bind() as inner):
            return inner
        case Exists(Value(term)):
            return Compare("<>", term, ZERO_TERM)
        case Exists(Join(parts)):
            return join(*map(Exists, parts))
    return None


@rule("Exists(Sum_A(f ⋈ Q)) = f ⋈ Exists(Sum_A(Q)) where the test f uses A and bound variables only", Exists)
def tests_out_of_exists(q: Query, context: Context) -> Query | None:
    match q:
        case Exists(Sum(group, Join(parts))) if not is_sessions(q):

            def is_test(f: Query) -> bool:
                if isinstance(f, Compare):
                    return inputs(f) <= group | context.bound
                return isinstance(f, Bind) and f.var in group and inputs(f) <= context.bound

            out = [f for f in parts if is_test(f)]
            rest = join(*(f for f in parts if f not in out))
            if out and group - frozenset().union(*map(outputs, out)) <= outputs(rest):
                return join(*out, Exists(sum_(group & outputs(rest), rest)))
    return None


@rule(
    "Exists(Sum_A(Exists(R) ⋈ Q)) = Exists(Sum_A(R ⋈ Q)) where no multiplicity is negative",
    Exists,
)
def count_rows(q: Query, context: Context) -> Query | None:
    if not context.counted or not isinstance(q, Exists) or not is_count(q.query) or is_sessions(q):
        return None
    after = _counts(q.query)
    return Exists(after) if after != q.query else None


def is_count(q: Query) -> bool:
    """Q is not negative anywhere, where relations are not."""
    match q:
        case Rel() | Exists() | Compare() | Bind():
            return True
        case Value():
            return (constant := split_coefficient(q)[0]) > 0 and scale(constant, ONE) == q
        case Join() | Union() | Sum():
            return all(map(is_count, children(q)))
        case _:
            return False


def _counts(q: Query) -> Query:
    """Q with other numbers in the same places: the count of rows instead of 1 where there are some."""
    match q:
        case Exists(inner) if is_count(inner) and not is_sessions(q):
            return _counts(inner)
        case Join() | Union() | Sum():
            return map_children(q, _counts)
        case _:
            return q


@rule("Exists(Q₁ + Q₂) = Exists(c·Q₁ + c·Q₂): the sign of a sum does not matter to Exists", Exists)
def exists_sign(q: Query, context: Context) -> Query | None:
    match q:
        case Exists(Union(parts)):
            coefficient, _ = split_coefficient(parts[0])
            if coefficient < 0 and all(split_coefficient(p)[0] < 0 for p in parts):
                return Exists(union(*(scale(-1, p) for p in parts)))
    return None


@rule("Q ⋈ Exists(Sum_A(Exists(ΔR))) = Q where Q has ΔR over the same A as a factor: the domain says nothing new", Join)
def absorb_domain(q: Query, context: Context) -> Query | None:
    match q:
        case Join(parts):
            for f in parts:
                match f:
                    case Exists(Sum(group, Exists(Delta() | Rel() as atom))):
                        if any(_same_on(group, atom, other) for other in parts):
                            return without(parts, f)
    return None


def _same_on(group: frozenset[str], atom: Delta | Rel, other: Query) -> bool:
    """Both read the same relation, agree in the columns of ``group``, and what is equal in ``atom`` is in ``other``."""
    if type(other) is not type(atom) or not isinstance(other, (Delta, Rel)) or other.name != atom.name:
        return False
    pairs = set(zip(atom.vars, other.vars, strict=True))
    return len(pairs) == len(set(atom.vars)) and all(a not in group or a == b for a, b in pairs)


@rule("Exists(J(p, t, w)) ⋈ [w > t] = 0: a session begins with its first row", Join)
def no_later_start(q: Query, context: Context) -> Query | None:
    match q:
        case Join(parts):
            for f in parts:
                sessions = sessions_of(f.query) if isinstance(f, Exists) else None
                if sessions is not None and Compare(">", Var(sessions.start), Var(sessions.time)) in parts:
                    return ZERO
    return None


SIMPLIFICATIONS: tuple[Rule[Context], ...] = (
    constant_comparison,
    known_constant,  # before polynomial_expansion: what it takes away need not be multiplied out
    split_product,  # before unification: a factor of its own can be unified, pulled out or left
    polynomial_expansion,  # before sum_over_union, which needs the union on top
    sum_over_union,
    flatten_sums,  # before unification: then one product holds both sides
    unify_binding,
    unify_equality,
    drop_unused_binding,
    drop_unused_turns,
    split_exists,
    tests_out_of_exists,
    count_rows,
    exists_sign,
    absorb_domain,
    no_later_start,
    pull_out_of_sum,  # last: only what unification made independent of the sum
)


def simplify(q: Query, context: Context, trace: Trace | None = None, known: Known | None = None) -> Query:
    """The normal form of Q where ``context.bound`` have values; ``known``: forms under contexts that differ in no more.

    A trace has those of its compilation.
    """
    if known is None:
        known = {} if trace is None else trace.normal_forms
    memo = NormalForms(context.bound, known)
    return rewrite(q, SIMPLIFICATIONS, context, trace, memo)
