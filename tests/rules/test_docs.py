"""docs/rules.md is what the rules and their pairs say now."""

from tests.rules.generate_docs import PAGE, page
from tests.rules.pairs import RULES


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python -m tests.rules.generate_docs"


def test_the_page_has_every_rule() -> None:
    assert [name for name in RULES if f"`{name}`" not in page()] == []
