"""Time of a micro-batch by the groups of state that are there, on logarithmic axes."""

from __future__ import annotations

from pathlib import Path

from bench.spark.scale import ROWS, Size


def plot(sizes: list[Size], path: Path) -> None:
    """Drawn to the format that the file's suffix names."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.6), layout="constrained")
    panel = figure.subplots()
    groups = [size.groups for size in sizes]
    panel.loglog(groups, [s.stretch.typical * 1000 for s in sizes], label="median", color="#0072b2", marker="o")
    panel.loglog(groups, [s.stretch.worst * 1000 for s in sizes], label="worst", color="#d55e00", marker="s")
    panel.set_ylim(bottom=10)
    panel.set_xlabel("groups of state")
    panel.set_ylabel(f"ms for a micro-batch of {ROWS:,} rows")
    panel.grid(True, which="major", alpha=0.3)
    panel.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
