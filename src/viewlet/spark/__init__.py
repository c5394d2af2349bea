"""Views over Spark streams: the same native program in every cell of a grid, exactly once.

``maintain`` keeps the views of a SQL script fresh over streaming DataFrames; ``explain_change`` says what another
script would take over from it; ``session`` makes a Spark session where there is none; ``register`` makes
``spark.read.format("viewlet")`` known to a session, ``tables`` all views of a checkpoint to its SQL; ``debezium`` turns
change events of a database into rows that come and go, ``upserts`` those of any source that has a key,
``kafka`` the messages of a topic; ``back`` takes the newest batches of a checkpoint back; ``Declarative`` declares a
job function by function.
"""

try:
    import pyspark
except ImportError as missing:
    raise ImportError("viewlet.spark needs PySpark: pip install 'viewlet[spark]'") from missing
if tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 1):
    raise ImportError(f"viewlet.spark needs PySpark 4.1 or newer, and this is {pyspark.__version__}")

from viewlet.spark.driver.back import back
from viewlet.spark.driver.declarative import Declarative
from viewlet.spark.driver.envelopes import debezium
from viewlet.spark.driver.explain import explain_change
from viewlet.spark.driver.kafka import kafka
from viewlet.spark.driver.maintain import maintain
from viewlet.spark.driver.source import register, tables
from viewlet.spark.driver.upserts import upserts
from viewlet.spark.driver.views import Views
from viewlet.spark.session import session

__all__ = [
    "Declarative",
    "Views",
    "back",
    "debezium",
    "explain_change",
    "kafka",
    "maintain",
    "register",
    "session",
    "tables",
    "upserts",
]
