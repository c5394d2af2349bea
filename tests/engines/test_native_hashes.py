"""Keys that were chosen to meet in one place of a table cost what others cost."""

from __future__ import annotations

import contextlib
import time
from itertools import count
from random import Random
from typing import Any

from tests.engines.conformance import opened_natively
from viewlet import Database

CHOSEN = """
CREATE STREAM pairs (a BIGINT NOT NULL, b BIGINT NOT NULL);
CREATE STREAM words (word VARCHAR NOT NULL);
CREATE MATERIALIZED VIEW by_pair AS SELECT a, b, count(*) AS n FROM pairs GROUP BY a, b;
CREATE MATERIALIZED VIEW by_word AS SELECT word, count(*) AS n FROM words GROUP BY word;
"""
START = 0x9E3779B97F4A7C15  # base.hpp


def mix(state: int, value: int) -> int:
    product = (state ^ value) * 0x9FB21C651E98DF25
    return (product ^ product >> 64) & (1 << 64) - 1


def chosen_pairs(number: int) -> list[tuple[int, int]]:
    """With one hash, for who knows where hashing starts: what the first column leaves, the second takes back."""
    seconds = [mix(START, a) ^ 12345 for a in range(number)]
    return [(a, b - (b >> 63 << 64)) for a, b in enumerate(seconds)]


def chosen_words(number: int) -> list[tuple[str]]:
    words: list[tuple[str]] = []
    for first in (f"{n:08}".encode() for n in count()):
        second = mix(mix(START, 16), int.from_bytes(first, "little")) ^ 12345
        with contextlib.suppress(UnicodeDecodeError):
            words.append(((first + second.to_bytes(8, "little")).decode(),))
        if len(words) == number:
            return words
    raise AssertionError


def test_nobody_can_choose_keys_that_collide() -> None:
    """Pairs of one hash took 700 times as long as others, words 60 times."""
    db = opened_natively(CHOSEN)
    rng = Random(1)
    pairs, words = chosen_pairs(10_000), chosen_words(4_000)
    others = [(rng.randrange(2**62), rng.randrange(2**62)) for _ in pairs]
    as_long = [(f"{rng.randrange(10**16):016}",) for _ in words]
    assert seconds(db, "pairs", pairs) < 20 * seconds(db, "pairs", others)
    assert seconds(db, "words", words) < 20 * seconds(db, "words", as_long)


def seconds(db: Database, relation: str, rows: list[Any]) -> float:
    """To insert them, at best: three times."""
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        db.insert(relation, rows)
        taken.append(time.perf_counter() - start)
        db.delete(relation, rows)
    return min(taken)
