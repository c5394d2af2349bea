"""SQL → calculus, on sqlglot's parser. NULL rules live here; everything right of this package is free of them."""

from viewlet.sql.translate import translate

__all__ = ["translate"]
