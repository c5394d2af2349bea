"""Views over Spark streams: the same native program in every cell of a grid, exactly once.

``maintain`` keeps the views of a SQL script fresh over streaming DataFrames; ``explain_change`` says what another
script would take over from it; ``session`` makes a Spark session where there is none; ``register`` makes
``spark.read.format("viewlet")`` known to a session, ``tables`` all views of a checkpoint to its SQL; ``debezium`` turns
change events of a database into rows that come and go, ``upserts`` those of any source that has a key,
``kafka`` the messages of a topic.
"""

try:
    import pyspark  # noqa: F401
except ImportError as missing:
    raise ImportError("viewlet.spark needs PySpark: pip install 'viewlet[spark]'") from missing

from viewlet.spark.driver.envelopes import debezium
from viewlet.spark.driver.explain import explain_change
from viewlet.spark.driver.kafka import kafka
from viewlet.spark.driver.maintain import maintain
from viewlet.spark.driver.source import register, tables
from viewlet.spark.driver.upserts import upserts
from viewlet.spark.driver.views import Views
from viewlet.spark.session import session

__all__ = ["Views", "debezium", "explain_change", "kafka", "maintain", "register", "session", "tables", "upserts"]
