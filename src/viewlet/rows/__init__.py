"""Rows on their way in and out: checked, made of other forms, written down."""
