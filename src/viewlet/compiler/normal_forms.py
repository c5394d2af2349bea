"""What simplification brought to rest already: neither done nor told twice in one compilation."""

from __future__ import annotations

from viewlet.algebra.query import Query, variables

Known = dict[tuple[Query, frozenset[str]], Query]


class NormalForms(dict[Query, Query]):
    """Query ↦ normal form where ``bound`` have values.

    It depends on those of them only that the query mentions. So what an event does not touch is simplified once, and
    not again for every other event.
    """

    def __init__(self, bound: frozenset[str], known: Known) -> None:
        super().__init__()
        self.bound, self.known = bound, known

    def get(self, q: Query, default: Query | None = None) -> Query | None:  # type: ignore[override]
        form = super().get(q)
        if form is not None:
            return form
        form = self.known.get((q, self.bound & variables(q)), default)
        if form is not None:
            super().__setitem__(q, form)
        return form

    def __setitem__(self, q: Query, form: Query) -> None:
        super().__setitem__(q, form)
        self.known[q, self.bound & variables(q)] = form
