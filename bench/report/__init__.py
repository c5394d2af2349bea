"""The report of what was measured: one HTML file, and the same in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.report.document import document
from bench.report.markdown import markdown
from bench.report.page import page
from bench.results import Results

HTML, MARKDOWN = "report.html", "report.md"


def write_report(runs: Sequence[Results], folder: Path) -> tuple[Path, Path]:
    told = document(runs)
    folder.mkdir(parents=True, exist_ok=True)
    html, text = folder / HTML, folder / MARKDOWN
    html.write_text(page(told), encoding="utf-8")
    text.write_text(markdown(told), encoding="utf-8")
    return html, text
