"""The process from which Spark forks its Python workers: ``session`` names it.

PySpark's own has a worker import its modules after the fork, which with viewlet's takes half a second, and takes it
again whenever workers were idle for a minute and Spark sent them home. Here they are there before the fork.
"""

from __future__ import annotations

import gc
import socket

from pyspark import daemon

import viewlet.spark.task.stage  # noqa: F401  what the workers will need

_work = daemon.worker


def work(sock: socket.socket, authenticated: bool) -> int:
    """A worker that is sent home finds its socket closed when it says goodbye, which is no error to tell anybody of."""
    try:
        return _work(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    daemon.worker = work
    gc.freeze()
    daemon.manager()
