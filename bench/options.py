"""Arguments that the benchmarks' commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection


def numbers(text: str) -> list[int]:
    """``1_000,20``: for argparse's ``type``."""
    return [int(number.replace("_", "")) for number in text.split(",")]


def among(known: Collection[str]) -> Callable[[str], list[str]]:
    """``bsv,q3``, each one of those that are known: for argparse's ``type``."""

    def split(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",")]
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"no {unknown[0]!r}: choose from {', '.join(known)}")
        return names

    return split
