"""Today's alternatives beside viewlet: the same events, the same answers, each in an environment of its own."""
