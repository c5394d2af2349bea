"""Cells: a script spread over a grid, each cell running it unchanged on its share of the rows; what is not whole in a
cell is summed across them."""

from viewlet.cells.explain import explain_grid
from viewlet.cells.merge import Merge, Partial, merge_of
from viewlet.cells.plan import legal_grids, plan
from viewlet.cells.routing import All, Copy, Dimension, First, Grid, Hash, Route, Routing

__all__ = [
    "All",
    "Copy",
    "Dimension",
    "First",
    "Grid",
    "Hash",
    "Merge",
    "Partial",
    "Route",
    "Routing",
    "explain_grid",
    "legal_grids",
    "merge_of",
    "plan",
]
