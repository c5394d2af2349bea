"""How fast the engines keep the paper's views fresh, beside programs written by hand and DuckDB."""
