"""Dead letters: the rows of each batch that no cell could take, in ``dead/<b>.json``, a line for each.

They are written before the manifest of their batch, and a batch that is done again writes them again, the same ones. So
those of batches that Spark has committed are there once. They stay until somebody removes them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from viewlet.durable.store import Store
from viewlet.spark.driver.cluster import last_committed

LETTERS = "batch long, relation string, reason string, row string"


def write_letters(store: Store, batch: int, letters: Sequence[str]) -> None:
    if letters:
        lines = [json.dumps({"batch": batch, **json.loads(letter)}) for letter in letters]
        store.write(f"dead/{batch}.json", "\n".join(lines).encode())


def letter_files(checkpoint: str) -> list[str]:
    """Of batches that are committed, for Spark's readers."""
    store, last = Store.of(checkpoint), last_committed(checkpoint)
    batches = [int(name.removesuffix(".json")) for name in store.names("dead") if not name.startswith(".")]
    return [store.pattern_of(f"dead/{batch}.json") for batch in sorted(batches) if batch <= last]
