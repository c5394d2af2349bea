"""The paper's experiments (§6) on its own workload: one module for each figure, and what we ask beyond them."""
