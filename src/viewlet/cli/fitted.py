"""Text that fits."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size


def fitted(text: str, width: int) -> str:
    """
    >>> fitted("viewlet", 7), fitted("viewlet", 5), fitted("東京都", 4)
    ('viewlet', 'view…', '東…')
    """
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…" * (width > 0)
