"""The snippets of docs/algebra.md do what the page says."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "algebra.md"


def python_blocks(page: str) -> str:
    """The page with every line outside a ``python`` block made empty, so that line numbers stay right."""
    kept, inside = [], False
    for line in page.splitlines():
        fence = line.startswith("```")
        kept.append(line if inside and not fence else "")
        inside = line == "```python" if fence else inside
    return "\n".join(kept)


def test_the_page_runs():
    snippets = doctest.DocTestParser().get_doctest(python_blocks(PAGE.read_text("utf-8")), {}, PAGE.name, str(PAGE), 0)
    report: list[str] = []
    result = doctest.DocTestRunner().run(snippets, out=report.append)
    assert result.failed == 0, "".join(report)
    assert result.attempted > 30


def test_text_around_blocks_is_left_out():
    assert python_blocks("a\n```python\n>>> 1\n```\nb\n```\nc\n```\n") == "\n\n>>> 1\n\n\n\n\n"
