"""A program at work on an engine: updates in, all or none, and who is told what changed."""
