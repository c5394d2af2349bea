"""now() and its like: the moment that the clock of a database shows. ``db.tick`` moves it.

The clock is a stream with one row, so now() is made of nested aggregates like others: the sum of ``at`` by the count of
rows. A condition such as ``t > now() - INTERVAL '5 minutes'`` compares a column with a number, and an order of ``t``
serves it. An engine that takes one event after the other inserts the new moment before it deletes the old one. In
between now() is their mean: no view sees a time that never was, for which a cast or a sum might fail.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from viewlet.algebra.query import Bind, Rel, Value, join, sum_
from viewlet.algebra.terms import Var, number, op
from viewlet.schema import CLOCK, DATE, TIMESTAMP, TIMESTAMPTZ
from viewlet.sql.expr import Expr
from viewlet.sql.expression import translates
from viewlet.sql.functions import arguments, named
from viewlet.sql.functions_time import days_of
from viewlet.sql.scope import Scope


@named("now", "get_current_timestamp", "transaction_timestamp")
def _now_called(node: exp.Expr, scope: Scope) -> Expr:
    arguments(node, scope, 0)
    return now(scope)


@translates(exp.CurrentTimestamp)
def _now(node: exp.Expr, scope: Scope) -> Expr:
    return now(scope)


@translates(exp.Localtimestamp)
def _local(node: exp.Expr, scope: Scope) -> Expr:
    return replace(now(scope), type=TIMESTAMP)


@named("current_localtimestamp")
def _local_called(node: exp.Expr, scope: Scope) -> Expr:
    arguments(node, scope, 0)
    return replace(now(scope), type=TIMESTAMP)


@translates(exp.CurrentDate)
def _today(node: exp.Expr, scope: Scope) -> Expr:
    """The day in UTC, as all of viewlet's time zones are."""
    return replace(days_of(replace(now(scope), type=TIMESTAMP)), type=DATE)


def now(scope: Scope) -> Expr:
    scope.session.catalog.reads_clock = True
    names = scope.session.names
    at, sum_of, count = names.fresh("now.at"), names.fresh("now"), names.fresh("now.rows")
    rows = Rel(CLOCK.name, (at,))
    binds = Bind(sum_of, sum_((), join(rows, Value(Var(at))))), Bind(count, sum_((), rows))
    moment = op("floor_div", Var(sum_of), op("greatest", Var(count), number(1)))  # no row: before the first tick
    return Expr(moment, TIMESTAMPTZ, moment, binds=binds)
