"""A view as a topic of Kafka's: the newest row of each key, as compacted topics have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from viewlet.spark.sinks.net import GONE, check_key, net_rows
from viewlet.spark.sinks.order import BATCH, WEIGHT, column, with_own_names

JSON = {"ignoreNullFields": "false"}  # a column that is NULL is said to be


@dataclass(frozen=True)
class Topic:
    """The function that ``foreachBatch`` calls, made by :func:`viewlet.spark.sinks.kafka`."""

    servers: str
    topic: str
    key: tuple[str, ...]
    options: Mapping[str, str] = field(repr=False)  # they may hold a password

    def __call__(self, changes: DataFrame, micro_batch: int) -> None:
        """A message for each key that changed. A repeated micro-batch repeats them, and the last of each stays last."""
        changes = with_own_names(changes)
        check_key(f"topic {self.topic}", changes, self.key)
        names = changes.drop(BATCH, WEIGHT).columns
        net = net_rows(f"topic {self.topic}", changes, self.key)
        row = F.to_json(F.struct(*map(column, names)), JSON)
        key = F.to_json(F.struct(*map(column, self.key)), JSON).alias("key")
        messages = net.select(key, F.when(F.col(GONE) == 0, row).alias("value"))
        settings = {**self.options, "kafka.bootstrap.servers": self.servers, "topic": self.topic}
        messages.write.format("kafka").options(**settings).save()
