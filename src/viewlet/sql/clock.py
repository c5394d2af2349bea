"""now() and its like: the moment that the clock of a database shows. ``db.tick`` moves it.

The clock is a stream with one row, so now() is a nested aggregate like others: n := Sum[](now()(at) ⋈ at). A condition
such as ``t > now() - INTERVAL '5 minutes'`` compares a column with a number, and an order of ``t`` serves it.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from viewlet.algebra.query import Bind, Rel, Value, join, sum_
from viewlet.algebra.terms import Var
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
    at, shown = names.fresh("now.at"), names.fresh("now")
    moment = sum_((), join(Rel(CLOCK.name, (at,)), Value(Var(at))))
    return Expr(Var(shown), TIMESTAMPTZ, Var(shown), binds=(Bind(shown, moment),))
