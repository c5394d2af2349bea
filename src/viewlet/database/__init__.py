"""A database as its user holds it: in memory, or in a directory."""
