"""Views over Spark streams: the same native program in every cell of a grid, exactly once.

``maintain`` keeps the views of a SQL script fresh over streaming DataFrames; ``session`` makes a Spark session where
there is none; ``register`` makes ``spark.read.format("viewlet")`` known to a session, ``tables`` all views of a
checkpoint to its SQL; ``debezium`` turns change events of a database into rows that come and go, ``upserts`` those of
any source that has a key.
"""

try:
    import pyspark  # noqa: F401
except ImportError as missing:
    raise ImportError("viewlet.spark needs PySpark: pip install 'viewlet[spark]'") from missing

from viewlet.spark.driver.envelopes import debezium
from viewlet.spark.driver.maintain import maintain
from viewlet.spark.driver.source import register, tables
from viewlet.spark.driver.upserts import upserts
from viewlet.spark.driver.views import Views
from viewlet.spark.session import session

__all__ = ["Views", "debezium", "maintain", "register", "session", "tables", "upserts"]
