"""What each experiment is called and what a reader must know of it, in the order of the report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Experiment:
    """A section of the report; figures 8 to 10 share one."""

    names: tuple[str, ...]
    title: str
    says: str

    @property
    def anchor(self) -> str:
        return self.names[0]


EXPERIMENTS = (
    Experiment(
        ("figure-7",),
        "Figures 5 and 7: refresh rates",
        "Twelve queries under every strategy, as triggers in generated C++, each event a refresh. `reevaluate` is the "
        "paper's depth 0, `classical` its depth 1, `naive` its naive recursive compilation, `optimized` its DBToaster; "
        "`cost` searches with the cost model instead of the heuristics. The databases run the query again after each "
        "event. `paper` and what begins with it is printed in the paper: another machine, in 2012.",
    ),
    Experiment(
        ("peers",),
        "Peers",
        "The same events and the same answer from programs that one could use instead, each in an environment and "
        "a process of its own and bounded in time. `viewlet` is a database as one uses it: events come in from Python, "
        "are checked, and base tables are kept. CPU seconds are those of all processes of a peer.",
    ),
    Experiment(
        ("figure-8", "figure-9", "figure-10"),
        "Figures 8 to 10: on the way through the stream",
        "Rate and memory over the fraction of the stream, from the runs of Figure 7. A curve that ends early was "
        "stopped by the clock.",
    ),
    Experiment(
        ("figure-11",),
        "Figure 11: scale",
        "The TPC-H queries over streams of growing databases, Orders kept near 30 thousand rows.",
    ),
    Experiment(
        ("latency",),
        "Latency of one event",
        "How long single events take: the middle one, the slow ones, and the slowest of all.",
    ),
    Experiment(
        ("ordered",),
        "Ordered access paths against scans",
        "The queries with inequalities while the book grows: with maps in order, and as in the paper, by scans.",
    ),
    Experiment(
        ("boundary",),
        "What the boundary costs",
        "The same triggers bare, and behind the ways in which events come in from Python.",
    ),
    Experiment(
        ("compile",),
        "Compile times",
        "From SQL to triggers, and from C++ to machine code.",
    ),
    Experiment(
        ("spark-throughput",),
        "Spark: throughput",
        "Views over streaming DataFrames, the state durable, everything pinned to one core.",
    ),
    Experiment(
        ("spark-overhead",),
        "Spark: what a micro-batch costs",
        "Few rows to a micro-batch, so that what remains is what every one costs, with views and without.",
    ),
    Experiment(
        ("spark-recompute",),
        "Spark: maintained, or run again",
        "The same view maintained by viewlet, and its query run again as Spark SQL over cached tables, without "
        "and with what the micro-batch itself costs.",
    ),
    Experiment(
        ("spark-executors",),
        "Spark: executors",
        "The same stream on one executor of one core and on several, with as many cells.",
    ),
    Experiment(
        ("spark-scale",),
        "Spark: growth with the state",
        "The same micro-batch over more and more groups of state.",
    ),
    Experiment(
        ("figure-3",),
        "Figure 3: rules applied",
        "Read off the compiler's own record of what it did.",
    ),
    Experiment(
        ("figure-6",),
        "Figure 6: features of the workload",
        "Derived from the SQL by a program.",
    ),
)


def experiments(present: set[str]) -> list[Experiment]:
    """Those that have something to show; what nobody has described yet is shown under its own name."""
    described = [experiment for experiment in EXPERIMENTS if present & set(experiment.names)]
    names = {name for experiment in EXPERIMENTS for name in experiment.names}
    return described + [Experiment((name,), name.capitalize(), "") for name in sorted(present - names)]
