"""Cells in the threads of one process."""
