"""What is refused is named as it was written, and what DuckDB takes is never called wrong."""

from __future__ import annotations

import re

import duckdb
import pytest

import viewlet
from viewlet.errors import SqlError, UnsupportedError
from viewlet.sql import translate

SCHEMA = """\
CREATE STREAM r (a INTEGER, b INTEGER, s VARCHAR, f BOOLEAN, d DATE, t TIMESTAMP, x DOUBLE, p DECIMAL(10,2));
CREATE STREAM u (a INTEGER, c INTEGER);
"""
ROWS = """\
INSERT INTO r VALUES (1, 2, '1', true, '2024-01-01', '2024-01-01 12:00:00', 1.5, 1.25);
INSERT INTO r VALUES (NULL, 2, '1', false, '2024-01-01', '2024-01-01 12:00:00', 1.5, 1.25);
INSERT INTO u VALUES (1, 2);
"""
EXPRESSIONS = r"""
date_trunc('hour', t)
string_agg(s, ',')
string_agg(s)
listagg(s, ',')
group_concat(s)
unnest([1,2])
list(a)
array_agg(a)
bool_and(f)
bool_or(f)
every(f)
any_value(a)
first(a)
last(a)
arg_max(a,b)
max_by(a,b)
arg_min(a,b)
median(a)
mode(a)
quantile_cont(x,0.5)
approx_count_distinct(a)
stddev_pop(a)
variance(a)
var_pop(a)
corr(a,b)
covar_pop(a,b)
regr_slope(a,b)
count_if(f)
product(a)
bit_and(a)
bit_xor(a)
histogram(a)
entropy(a)
skewness(a)
kurtosis(a)
favg(x)
fsum(x)
sum_no_overflow(a)
percentile_cont(0.5) within group (order by a)
extract(year from t)
extract('month' from t)
year(t)
month(d)
date_part('year', d)
dayofweek(d)
quarter(d)
week(d)
epoch(t)
last_day(d)
strftime(t,'%Y')
strptime(s,'%Y')
to_timestamp(a)
make_date(a,b,1)
date_diff('day', d, d)
datediff('day', d, d)
date_add(d, interval 1 day)
date_sub('day', d, d)
age(t)
now()
current_date
current_timestamp
today()
get_current_timestamp()
time_bucket(interval '1 hour', t)
greatest(a,b)
least(a,b)
ifnull(a,b)
if(f,a,b)
iff(f,a,b)
a ** 2
a ^ 2
pow(a,2)
power(a,2)
sqrt(x)
ln(x)
log(x)
log10(x)
log2(x)
exp(x)
sin(x)
atan2(x,x)
pi()
round(x)
round(p,1)
floor(x)
ceil(x)
ceiling(x)
trunc(x)
sign(a)
mod(a,b)
a % b
a // b
gcd(a,b)
factorial(a)
a & b
a | b
a << 1
a >> 1
~a
xor(a,b)
@a
upper(s)
ucase(s)
lower(s)
lcase(s)
length(s)
len(s)
char_length(s)
strlen(s)
substr(s,1)
substring(s,1,2)
substring(s from 1 for 2)
left(s,1)
right(s,1)
lpad(s,3,'x')
trim(s)
ltrim(s)
trim(both 'x' from s)
replace(s,'a','b')
reverse(s)
repeat(s,2)
concat(s,s)
concat_ws(',',s,s)
s || 'x'
position('a' in s)
strpos(s,'a')
instr(s,'a')
contains(s,'a')
starts_with(s,'a')
s ^@ 'a'
prefix(s,'a')
ends_with(s,'a')
split_part(s,',',1)
string_split(s,',')
regexp_matches(s,'a')
regexp_replace(s,'a','b')
regexp_extract(s,'a')
s ~ 'a'
s !~ 'a'
s LIKE 'a%'
s NOT LIKE 'a%'
s ILIKE 'a%'
s GLOB 'a*'
s SIMILAR TO 'a'
s ~~ 'a'
s ~~* 'a'
s LIKE 'a$%' ESCAPE '$'
md5(s)
sha256(s)
hash(s)
ascii(s)
chr(a)
unicode(s)
format('{}',a)
printf('%d',a)
hex(a)
bin(a)
levenshtein(s,s)
jaccard(s,s)
s[1]
s[1:2]
[a,b]
[a,b][1]
{'a': a}
{'a': a}.a
struct_pack(k := a)
row(a,b)
(a,b)
map([a],[b])
list_value(a,b)
list_transform([a], lambda z: z+1)
[z+1 for z in [a]]
len([a])
list_contains([a],1)
array_length([a])
json_extract(s,'$.a')
s->'a'
s->>'a'
to_json(a)
a::VARCHAR
a::HUGEINT
a::SMALLINT
a::REAL
a::TINYINT
x::INTEGER
p::INTEGER
t::DATE
t::TIME
s::INTEGER
s::DATE
s::JSON
a::BOOLEAN
f::INTEGER
d::VARCHAR
try_cast(s as integer)
cast(s as date)
a::UINTEGER
s::BLOB
s::UUID
t::TIMESTAMPTZ
t AT TIME ZONE 'UTC'
t - t
t - d
age(t,t)
d - t
interval '1 day'
interval 1 day * a
d + interval (a) day
d + interval '1 day 2 hours'
d + interval '1 month 1 day'
d + interval '1 d ago'
d + interval '1 year 2 months'
d + interval '1' century
d + interval '1' h
d + interval '1 h'
d + interval '02:03'
d + interval '1e3' day
d + to_days(a)
t + interval '1' day * 2
d + (interval '1 day')
99999999999999999999
-9223372036854775808
9223372036854775808
1e400
0x10
0b11
1_000
.5
5.
1e5
'a'
E'a\nb'
$$abc$$
NULL
true
'2024-01-01'::DATE
DATE '2024-1-1'
DATE '0000-01-01'
DATE '10000-01-01'
DATE '2024/01/01'
DATE 'infinity'
TIMESTAMP '2024-01-01 00:00:00.1234567'
TIMESTAMP '2024-01-01 00:00:00Z'
TIMESTAMP '2024-01-01 24:00:00'
TIMESTAMPTZ '2024-01-01 00:00:00+00'
TIME '12:00'
a = '1'
a < '5'
p = '1.5'
f = 'true'
f = 1
a + '1'
a = f
d = '2024-01-01'
t > '2024-01-01'
s = 1
s < 5
a || 'x'
sum(a > 1)
sum(f)
avg(f)
min(f)
count()
count(*)
sum(s)
sum(d)
min(a, 2)
max(a, 3)
sum(DISTINCT a, b)
count(DISTINCT a)
count(DISTINCT (a, b))
count(a, b)
sum(a ORDER BY b)
sum(a) FILTER (WHERE a > 1)
sum(a) OVER ()
row_number() OVER (ORDER BY a)
lag(a) OVER (ORDER BY a)
sum(DISTINCT f)
count(*) > 1 AND f
coalesce(a)
coalesce(a, 's')
coalesce(s, 1)
nullif(a, 's')
nullif(a,b)
CASE WHEN f THEN 1 ELSE 'x' END
CASE WHEN a THEN 1 END
CASE f WHEN true THEN 1 END
CASE WHEN f THEN 1 ELSE NULL END
a IN (1, 'x')
a IN (1, '2')
a IN []
a IN ()
(a,b) IN ((1,2))
(a, b) = (1, 2)
a BETWEEN 1 AND 'x'
a BETWEEN '1' AND '3'
a IS DISTINCT FROM b
f IS UNKNOWN
f IS NOT UNKNOWN
f IS TRUE
a IS TRUE
a ISNULL
a NOTNULL
a == b
a != b
NOT a
a AND f
a AND b
-s
-d
+a
- - a
abs(s)
abs(d)
abs(-a)
a * d
a + d
d + 1.5
d + x
1 + d
d - 1
d + d
d * 2
t + 1
t - 1
s + 1
s + s
f + 1
f + f
a = ANY (SELECT a FROM u)
a > ALL (SELECT a FROM u)
a = ANY ([1,2])
EXISTS (SELECT 1 FROM u)
(SELECT a FROM u)
(SELECT max(a) FROM u)
(SELECT max(a), 1 FROM u)
(SELECT a FROM u LIMIT 1)
(SELECT sum(r.a) FROM u)
a IN (SELECT a, c FROM u)
a IN (SELECT s FROM r)
a IN u
array(SELECT a FROM u)
COLUMNS(*)
COLUMNS('a')
#1
rowid
r
r.a
main.r.a
"a"
r."a"
a AS "my col"
s COLLATE NOCASE
user
grouping(a)
typeof(a)
a::INTEGER
a::BIGINT
a::DOUBLE
a::DECIMAL(12,2)
p::DECIMAL(10,1)
d::TIMESTAMP
a::INTEGER::BIGINT
CAST(NULL AS INTEGER)
a::TEXT
s::VARCHAR
s::VARCHAR(3)
1 = 1
1 < 2 < 3
a < b < 3
a = b = f
f = (a < b)
a IS NULL = f
x = 0.1
least(1)
string_agg(DISTINCT s, ',' ORDER BY s)
list(a ORDER BY b)
first(a ORDER BY b)
isnan(x)
isfinite(d)
x / 0
a / b
'NaN'::DOUBLE
'inf'::DOUBLE
'1'::INTEGER
'true'::BOOLEAN
TRUE::INTEGER
""".strip().splitlines()
QUERIES = r"""
SELECT a AS x1, x1 + 1 AS y1 FROM r
SELECT a + 1 AS y1 FROM r WHERE y1 > 2
SELECT a AS k, count(*) AS n, n + 1 AS m FROM r GROUP BY k
SELECT a + 1 AS k, count(*) FROM r GROUP BY k
SELECT a, count(*) AS n FROM r GROUP BY a HAVING n > 1
SELECT a FROM r QUALIFY row_number() OVER () = 1
SELECT a FROM r UNION BY NAME SELECT a FROM u
SELECT a FROM r UNION ALL BY NAME SELECT a FROM u
SELECT a FROM r EXCEPT ALL SELECT a FROM u
FROM r
FROM r SELECT a
SELECT * FROM r ORDER BY ALL
SELECT a FROM r LIMIT 10%
SELECT a FROM r USING SAMPLE 10%
SELECT a FROM r TABLESAMPLE 10%
PIVOT r ON a USING sum(b)
SELECT * FROM (PIVOT r ON a USING sum(b))
UNPIVOT r ON a, b INTO NAME n VALUE v
SELECT * EXCLUDE a FROM r
SELECT * EXCLUDE (a) FROM r
SELECT * REPLACE (a+1 AS a) FROM r
SELECT * RENAME (a AS z) FROM r
SELECT * LIKE 'a%' FROM r
SELECT r.* FROM r
SELECT a, b FROM r GROUP BY ALL
SELECT a, sum(b) FROM r GROUP BY ROLLUP (a)
SELECT a, sum(b) FROM r GROUP BY CUBE (a)
SELECT a, sum(b) FROM r GROUP BY GROUPING SETS ((a), ())
SELECT a, sum(b) FROM r GROUP BY ()
SELECT DISTINCT ON (a) a, b FROM r
SELECT a FROM r, u
SELECT r.a FROM r, u WHERE r.a = u.a
SELECT * FROM r ASOF JOIN u ON r.a >= u.a
SELECT * FROM r POSITIONAL JOIN u
SELECT * FROM r CROSS JOIN u
SELECT * FROM r LEFT JOIN u USING (a)
SELECT * FROM r JOIN u ON r.a = u.a
SELECT * FROM r INNER JOIN u USING (a)
SELECT * FROM r NATURAL JOIN u
SELECT * FROM r SEMI JOIN u USING (a)
SELECT * FROM r JOIN LATERAL (SELECT 1) q ON true
SELECT * FROM generate_series(1, 3)
SELECT * FROM range(3)
SELECT * FROM unnest([1,2])
SELECT * FROM read_csv('x.csv')
SELECT * FROM 'x.csv'
VALUES (1)
SELECT * FROM (VALUES (1)) q
TABLE r
SELECT * FROM main.r
SELECT * FROM memory.main.r
SELECT a FROM r q(z)
SELECT z FROM r q(z)
SELECT q.z FROM (SELECT a FROM r) q(z)
SELECT a FROM (r)
SELECT * FROM (r JOIN u USING (a))
WITH q AS MATERIALIZED (SELECT a FROM r) SELECT a FROM q
WITH q AS NOT MATERIALIZED (SELECT a FROM r) SELECT a FROM q
WITH q(z) AS (SELECT a FROM r) SELECT z FROM q
WITH RECURSIVE q AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM q WHERE a < 3) SELECT a FROM q
SELECT a FROM r WINDOW w AS (ORDER BY a)
SELECT sum(a) OVER w FROM r WINDOW w AS (ORDER BY a)
SELECT a FROM r FETCH FIRST 3 ROWS ONLY
SELECT a FROM r OFFSET 1
SELECT
SELECT a, FROM r
SELECT a FROM r,
SELECT ALL a FROM r
SELECT 1
SELECT a INTO z FROM r
SELECT a FROM r FOR UPDATE
SELECT a x1 FROM r
SELECT x1: a FROM r
SELECT a FROM r AS q WHERE q.a > 1
SELECT a FROM q: r
SELECT a, a FROM r
SELECT a AS z, b AS z FROM r
SELECT count(*) FROM r HAVING count(*) > 1
SELECT a FROM r HAVING true
SELECT a FROM r GROUP BY a, 1
SELECT a FROM r GROUP BY 'x'
SELECT a FROM r GROUP BY 1.5
SELECT a FROM r GROUP BY NULL
SELECT sum(a) FROM r GROUP BY b ORDER BY b
(SELECT a FROM r) UNION ALL (SELECT a FROM u)
(SELECT a FROM r ORDER BY a LIMIT 1) UNION ALL SELECT a FROM u
SELECT a FROM r UNION ALL SELECT s FROM r
SELECT a FROM r UNION ALL SELECT d FROM r
SELECT a FROM r UNION ALL SELECT a, c FROM u
SELECT a FROM r MINUS SELECT a FROM u
SELECT a FROM r WHERE a
SELECT a FROM r WHERE s
SELECT a FROM r WHERE NULL
SELECT a FROM r WHERE a = 1 = f
SELECT r.a FROM r JOIN u ON r.a
SELECT sum(a) FROM r WHERE sum(a) > 1
SELECT sum(sum(a)) FROM r
SELECT a, sum(b) FROM r
SELECT zz FROM r
SELECT a FROM zz
SELECT foo(a) FROM r
SELECT x.y.z.w FROM r
SUMMARIZE r
DESCRIBE r
SHOW TABLES
""".strip().splitlines()
ALL = [*(f"SELECT {e} FROM r" for e in EXPRESSIONS), *QUERIES]
TYPES = {"INTEGER", "BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN", "DECIMAL", "DATE", "TIMESTAMP"}


@pytest.fixture(scope="module")
def referee() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(SCHEMA.replace("STREAM", "TABLE") + ROWS)
    return connection


def takes(referee: duckdb.DuckDBPyConnection, query: str) -> bool:
    try:
        referee.execute(query).fetchall()
    except duckdb.Error:
        return False
    return True


def refusals() -> dict[str, SqlError]:
    errors: dict[str, SqlError] = {}
    for query in ALL:
        try:
            translate(f"{SCHEMA}CREATE MATERIALIZED VIEW v AS\n{query}")
        except SqlError as error:
            errors[query] = error
    return errors


REFUSALS = refusals()


def test_many_are_refused_and_many_taken() -> None:
    assert len(REFUSALS) > 100
    assert len(ALL) - len(REFUSALS) > 60


def test_what_duckdb_takes_is_not_called_wrong(referee: duckdb.DuckDBPyConnection) -> None:
    wrong = [query for query, error in REFUSALS.items() if not isinstance(error, UnsupportedError)]
    assert len(wrong) > 30
    assert [query for query in wrong if takes(referee, query)] == []


def test_errors_name_what_was_written() -> None:
    """Each word in capitals is a word of the query, or a type."""
    strange = {}
    for query, error in REFUSALS.items():
        named = error.construct if isinstance(error, UnsupportedError) else error.message
        words = set(re.findall(r"\b[A-Z_]{2,}\b", named)) - TYPES
        if any(word.lower() not in query.lower() for word in words):
            strange[query] = named
    assert strange == {}


def test_a_function_is_pointed_at() -> None:
    named = [(q, e) for q, e in REFUSALS.items() if "the function" in e.message or "the aggregate" in e.message]
    assert len(named) > 20
    for query, error in named:
        assert isinstance(error, UnsupportedError)
        assert error.line == 4
        name = error.construct.split()[-1]
        assert query[(error.column or 0) - 1 :].upper().startswith(f"{name}("), query


def test_check_goes_on_after_each_of_them() -> None:
    """One more thing is refused before it, and one behind it; what only the parser can tell ends the view."""
    lost = []
    for expression in EXPRESSIONS:
        error = REFUSALS.get(f"SELECT {expression} FROM r")
        if error is None or "syntax error" in error.message:
            continue
        query = f"SELECT foo(a) AS x, {expression} AS y FROM r WHERE zap(b) > 1 AND qux(s) = 1"
        (view,) = viewlet.check(f"{SCHEMA}CREATE MATERIALIZED VIEW v AS\n{query};")
        messages = [f.message for f in view.findings]
        wanted = ["the function FOO", error.message.split(" is not")[0], "the function ZAP", "the function QUX"]
        if not all(any(message.startswith(w) for message in messages) for w in wanted):
            lost.append((query, error.message, messages))
    assert lost == []
