"""An order book on Spark, as a job for ``spark-submit``: views of live bids and asks, shown at the end.

    spark-submit --master spark://host:7077 examples/orderbook_job.py /shared/orderbook

All executors must reach the directory. Without a cluster, ``python examples/orderbook_job.py DIR`` runs the same job
inside this process. ``spark-submit`` needs Java 17 or newer; where there is none,
``export JAVA_HOME=$(python -m viewlet.spark.java)`` names one.
"""

from __future__ import annotations

import sys

from viewlet.spark import maintain, session
from viewlet.workloads.event_files import order_book
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES

BOOK = """
CREATE MATERIALIZED VIEW book AS
SELECT broker_id, count(*) AS orders, sum(volume) AS volume, max(price) AS best FROM bids GROUP BY broker_id;
"""
SCRIPT = FINANCE + BOOK + PAPER_QUERIES["axf"].sql()


def main(directory: str, events: int = 100_000) -> None:
    spark = session(app="viewlet order book")
    files = order_book(spark, f"{directory}/events", events, live=1_000, events_per_file=20_000)
    sources = {name: files.stream(spark, name) for name in files.relations}
    views = maintain(spark, SCRIPT, sources, f"{directory}/checkpoint", trigger={"availableNow": True})
    views.query.awaitTermination()
    for progress in views.progress:
        print(f"batch {progress['batch']}: {progress['rows']} rows in {progress['job_seconds']:.2f} s")
    for name in views:
        print(name)
        views[name].orderBy("broker_id").show()
    views.stop()


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
