"""The report in Markdown: the same words and tables; charts are left out, their figures stand in the tables."""

from __future__ import annotations

from bench.report.blocks import Bars, Block, Bullets, Cell, Document, Lines, Prose, Section, Table


def markdown(document: Document) -> str:
    parts = [f"# {document.title}", document.subtitle, *(f"**{alarm}**" for alarm in document.alarms)]
    if document.facts:
        facts = (f"**{f.number}** {f.meaning}" + (f" ({f.aside})" if f.aside else "") for f in document.facts)
        parts.append("\n".join(f"- {fact}" for fact in facts))
    parts += map(_section, document.sections)
    return "\n\n".join(parts) + "\n"


def table_lines(header: tuple[str, ...], rows: tuple[tuple[Cell, ...], ...]) -> str:
    sides = ["---" if index == 0 or cell.is_word else "---:" for index, cell in enumerate(rows[0])]
    lines = [list(map(_flat, header)), sides, *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _section(section: Section) -> str:
    blocks = (text for block in section.blocks if (text := _block(block)))
    return "\n\n".join([f"## {section.title}", *blocks])


def _block(block: Block) -> str:
    match block:
        case Prose(text):
            return text
        case Bullets(items, title):
            listed = "\n".join(f"- {' '.join(item.split())}" for item in items)
            return f"{title}:\n\n{listed}" if title else listed
        case Table(title, header, rows):
            return "\n\n".join(filter(None, (title and f"### {title}", table_lines(header, rows))))
        case Bars(title):  # its table follows
            return f"### {title}"
        case Lines():
            return ""


def _cell(cell: Cell) -> str:
    return _flat(f"{cell.text} ({cell.aside})" if cell.aside else cell.text)


def _flat(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
