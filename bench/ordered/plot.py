"""The growth of every query on logarithmic axes: one panel for each, in one picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.ordered.growth import HAND, ORDERED, SCAN, Growth
from bench.ordered.report import FROM, factor
from viewlet.errors import Error

COLUMNS = 3
LOOKS = {  # colours that the colour-blind tell apart
    SCAN: {"label": "the paper's strategy (scans)", "color": "#d55e00", "marker": "s"},
    ORDERED: {"label": "ordered access paths", "color": "#0072b2", "marker": "o"},
    HAND: {"label": "by hand", "color": "#888888", "marker": ".", "linestyle": ":"},
}


def require_matplotlib() -> None:
    """Before anything is measured: it would be a pity afterwards."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as missing:
        raise Error("plots are drawn with matplotlib: pip install matplotlib") from missing


def plot(growths: Mapping[str, Growth], path: Path) -> None:
    """Drawn to the format that the file's suffix names."""
    from matplotlib.figure import Figure

    rows = -(-len(growths) // COLUMNS)
    figure = Figure(figsize=(4 * COLUMNS, 3.2 * rows + 0.8), layout="constrained")
    panels = figure.subplots(rows, COLUMNS, sharex=True, sharey=True, squeeze=False).ravel()
    for panel, (name, growth) in zip(panels, growths.items(), strict=False):
        _draw(panel, name, growth)
    for panel in panels[len(growths) :]:
        panel.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(LOOKS), frameon=False)
    figure.suptitle("CPU time per event, the view fresh after every one")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _draw(panel: Any, name: str, growth: Growth) -> None:
    for who, look in LOOKS.items():
        curve = growth.curves[who]
        panel.loglog([p.live for p in curve], [p.per_event * 1e6 for p in curve], **look)
    panel.set_title(
        f"{name.upper()}: ordered ×{factor(growth.curves[ORDERED]):.2g} from {FROM:,} on", fontsize="medium"
    )
    panel.set_xlabel("live customers" if name == "q22" else "live orders")
    panel.set_ylabel("µs per event")
    panel.grid(True, which="major", alpha=0.3)
    panel.label_outer()
