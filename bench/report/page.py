"""The report as one HTML file that asks for nothing else: style, script and charts are inside."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path

from bench.report.blocks import Bars, Block, Bullets, Cell, Document, Fact, Lines, Prose, Section, Table
from bench.report.svg import bars_svg, lines_svg

HERE = Path(__file__).parent
CODE = re.compile(r"`([^`]+)`")


def page(document: Document) -> str:
    sections = "\n".join(map(_section, document.sections))
    links = "".join(f'<a href="#{s.anchor}">{escape(s.title)}</a>' for s in document.sections)
    alarms = "".join(f'<p class="alarm" role="alert">{_prose(alarm)}</p>' for alarm in document.alarms)
    facts = f'<div class="facts">{"".join(map(_fact, document.facts))}</div>' if document.facts else ""
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(document.title)}</title>
<style>
{(HERE / "page.css").read_text("utf-8")}</style>
</head>
<body>
<header>
<button type="button" id="theme" aria-label="Light or dark">◐</button>
<h1>{escape(document.title)}</h1>
<p class="subtitle">{_prose(document.subtitle)}</p>
{alarms}{facts}
<nav aria-label="Sections">{links}</nav>
</header>
<main>
{sections}
</main>
<script>
{(HERE / "page.js").read_text("utf-8")}</script>
</body>
</html>
"""


def _fact(fact: Fact) -> str:
    aside = f"<small>{escape(fact.aside)}</small>" if fact.aside else ""
    return f'<div class="fact"><strong>{escape(fact.number)}</strong><span>{escape(fact.meaning)}</span>{aside}</div>'


def _section(section: Section) -> str:
    blocks = "\n".join(map(_block, section.blocks))
    return f'<section id="{section.anchor}">\n<h2>{escape(section.title)}</h2>\n{blocks}\n</section>'


def _block(block: Block) -> str:
    match block:
        case Prose(text):
            return f"<p>{_prose(text)}</p>"
        case Bullets(items, title):
            return _folded(title, f"<ul>{''.join(f'<li>{_prose(item)}</li>' for item in items)}</ul>")
        case Table(title=title, is_folded=True):
            return _folded(title, _table(block))
        case Table(title=title):
            return f"<h3>{_prose(title)}</h3>{_table(block)}" if title else _table(block)
        case Bars():
            return _figure(block.title, [panel.title for panel in block.panels], bars_svg(block))
        case Lines():
            key = _key(dict.fromkeys((c.label, c.kind) for panel in block.panels for c in panel.curves))
            return _figure(block.title, [panel.title for panel in block.panels], lines_svg(block), key)


def _figure(title: str, titles: Iterable[str], drawings: Iterable[str], key: str = "") -> str:
    panels = "".join(
        f'<div class="panel"><h4>{escape(name)}</h4>{drawing}</div>'
        for name, drawing in zip(titles, drawings, strict=True)
    )
    return f'<figure><figcaption>{_prose(title)}</figcaption>{key}<div class="panels">{panels}</div></figure>'


def _key(curves: Iterable[tuple[str, str]]) -> str:
    items = "".join(f'<li><i class="k-{kind}"></i>{escape(label)}</li>' for label, kind in curves)
    return f'<ul class="key">{items}</ul>'


def _table(table: Table) -> str:
    head = "".join(
        f'<th scope="col"{_classes(word=cell.is_word)}>{_prose(name)}</th>'
        for name, cell in zip(table.header, table.rows[0], strict=True)
    )
    body = "".join(f"<tr>{_row(row)}</tr>" for row in table.rows)
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{escape(table.title or "table")}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(row: tuple[Cell, ...]) -> str:
    first, *others = row
    cells = "".join(f"<td{_classes(word=cell.is_word, faint=cell.is_faint)}>{_cell(cell)}</td>" for cell in others)
    return f'<th scope="row">{_cell(first)}</th>{cells}'


def _classes(**holds: bool) -> str:
    named = " ".join(name for name, does in holds.items() if does)
    return f' class="{named}"' if named else ""


def _cell(cell: Cell) -> str:
    aside = f"<small>{escape(cell.aside)}</small>" if cell.aside else ""
    return f"{_prose(cell.text)}{aside}"


def _folded(title: str, inner: str) -> str:
    return f"<details><summary>{_prose(title)}</summary>{inner}</details>" if title else inner


def _prose(text: str) -> str:
    return CODE.sub(r"<code>\1</code>", escape(text))
