"""The Python tier: trigger programs as generated Python over dictionaries; exact, ready at once, needs no compiler."""
