"""The domain of a change (§5.2) holds what the event leads to, and nothing that must be evaluated beside it."""

from __future__ import annotations

import pytest

from viewlet.algebra.query import relations
from viewlet.algebra.text import parse
from viewlet.compiler.delta import range_restriction
from viewlet.program.trigger import Event

INSERT, DELETE, BULK = Event("+", "R", ("@j", "@x")), Event("-", "R", ("@j", "@x")), Event("Δ", "R", ())


@pytest.mark.parametrize("event", [INSERT, DELETE, BULK])
def test_a_domain_has_no_version_of_what_changes(event: Event) -> None:
    """Which k have a row (j, x) of R says T alone: whether (k, x) was there before is asked in those places later."""
    domain, change = range_restriction(parse("Sum[k](Exists((Sum[k, x](T(k, j) * R(j, x)) + S(k, x))))"), event)
    assert relations(domain) == {"T"}
    assert relations(change) == {"R", "S", "T"}


def test_a_version_stays_where_the_event_does_not_lead_to_the_places() -> None:
    """n may change for each k of U. Then the test of n stays beside U, where it may be what leads to few k."""
    domain, _ = range_restriction(parse("Sum[k](Exists(Sum[k](U(k) * (n := Sum[](R(j, x))) * n)))"), INSERT)
    assert relations(domain) == {"R", "U"}
