"""What ``maintain`` is given, checked before anything runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from viewlet.errors import Error, in_short
from viewlet.schema import CLOCK, TIME
from viewlet.spark.driver.route import check_source
from viewlet.spark.expiry import Expiries, Expiry
from viewlet.spark.pipeline import Pipeline

TAKES_TIME = "spark.sql.timeType.enabled"
Frames = Mapping[str, DataFrame]
Trigger = str | Mapping[str, Any]


def check_script(script: object) -> None:
    """SQL has white space in it, and does not end like the name of a file."""
    if isinstance(script, str):
        text = script.strip()
        is_name = "\n" not in text and (text.endswith(".sql") or len(text.split()) == 1)
    else:
        is_name = isinstance(script, os.PathLike)
    if is_name:
        raise Error(f"the script is {script!s}, the name of a file: give its text, Path({str(script)!r}).read_text()")
    if not isinstance(script, str):
        raise Error(f"the script is of type {type(script).__name__}: give SQL as a str")


def checked_streams(pipeline: Pipeline, sources: Frames, history: Frames) -> dict[str, DataFrame]:
    """The sources that stream. Every relation needs one, and each must fit its relation."""
    for argument, frames in (("sources", sources), ("history", history)):
        _check_frames(argument, frames)
    for name, frame in (*sources.items(), *history.items()):
        relation = pipeline.relations.get(name)
        if relation is None or relation == CLOCK:
            there = ", ".join(known for known in pipeline.relations if known != CLOCK.name)
            raise Error(f"there is no stream or table {name} for this source; the script creates: {there}")
        check_source(relation, frame)
        if frame.isStreaming and relation.static:
            raise Error(f"{name} is a table, loaded once: give a static DataFrame, or declare it CREATE STREAM")
    for name, frame in history.items():
        if frame.isStreaming:
            raise Error(f"the history of {name} is a streaming DataFrame: give a static one, or give it as a source")
    for name in dict.fromkeys(copy.relation for copy in pipeline.grid.copies):
        if name not in sources and name != CLOCK.name:
            raise Error(f"no source for {name}: give sources={{{name!r}: a DataFrame, …}}")
    read = {copy.relation for copy in pipeline.grid.copies}
    return {name: frame for name, frame in sources.items() if frame.isStreaming and name in read}


def _check_frames(argument: str, frames: object) -> None:
    if not isinstance(frames, Mapping):
        kind = type(frames).__name__
        raise Error(f"{argument} is of type {kind}: give a dict, {argument}={{'name of a stream': a DataFrame, …}}")
    for name, frame in frames.items():
        if isinstance(frame, str | os.PathLike):
            read = f"spark.readStream.schema(…).parquet({str(frame)!r})"
            raise Error(
                f"{argument}[{name!r}] is {in_short(str(frame))}, a path: give a DataFrame that reads it, as {read}"
            )
        if not isinstance(frame, DataFrame):
            raise Error(f"{argument}[{name!r}] is of type {type(frame).__name__}: give a DataFrame of Spark's")


def check_types(spark: SparkSession, pipeline: Pipeline) -> None:
    """Spark has a TIME, and takes it only where it is told to."""
    named = [(f"{r.name}.{c.name}", c.type) for r in pipeline.relations.values() for c in r.columns]
    named += [(f"{r.name}.{c.name}", c.type) for r in pipeline.results.values() for c in r.columns]
    time = next((name for name, type_ in named if TIME in (type_, *type_.inner)), None)
    if time is not None and spark.conf.get(TAKES_TIME, "false") != "true":
        raise Error(
            f"{time} is a TIME, which this session of Spark's does not take: set {TAKES_TIME} to true before, as "
            f"viewlet.spark.session() does, or declare BIGINT"
        )


def checked_expiries(expire: object) -> Expiries:
    shaped = expire is None or isinstance(expire, Mapping)
    given = dict(expire) if isinstance(expire, Mapping) else {}
    pairs = [pair for pair in given.values() if isinstance(pair, tuple) and len(pair) == 2]
    if not shaped or len(pairs) < len(given) or not all(isinstance(after, timedelta) for _, after in pairs):
        raise Error(f"expire={expire!r}: give a dict, expire={{'stream': ('column', timedelta(hours=1))}}")
    return {name: Expiry(column, after) for name, (column, after) in given.items()}


def check_ports(ports: object) -> None:
    pair = isinstance(ports, tuple) and len(ports) == 2 and all(isinstance(port, int) for port in ports)
    if ports is not None and not (pair and isinstance(ports, tuple) and 0 < ports[0] <= ports[1] < 2**16):
        raise Error(f"ports={ports!r} is no range: give the first and the last, as (40000, 40100)")


def check_trigger(spark: SparkSession, trigger: Trigger | None) -> None:
    """By having Spark set it for a stream that is never started."""
    with_trigger(spark.readStream.format("rate").load().writeStream, trigger)


def with_trigger(writer: DataStreamWriter, trigger: Trigger | None) -> DataStreamWriter:
    """How often alone, as in ``"5 seconds"``, is Spark's processingTime."""
    if trigger is None or trigger == {}:
        return writer
    try:
        return writer.trigger(**({"processingTime": trigger} if isinstance(trigger, str) else trigger))
    except (TypeError, ValueError, PySparkException) as error:
        raise Error(
            f"trigger={trigger!r} is none of Spark's: give how often to look for rows, as '5 seconds', or "
            f"{{'availableNow': True}} to take what is there and end"
        ) from error
