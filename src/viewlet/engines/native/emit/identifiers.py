"""Names in C++.

A name that comes from a user ends in _: no word of C++, of the runtime or of the emitter does. A name that the emitter
makes of one (table_orders) has a word in front and no _ at its end. So a user may call things by any name.
"""

from __future__ import annotations

import re


def identifier(name: str) -> str:
    """A C++ name that still reads like the view or column; the alias of a table is left out."""
    stem = re.sub(r"\W", "_", _ascii(name.rsplit(".", 1)[-1].lstrip("@$"))).strip("_").lower() or "v"
    stem = re.sub(r"__+", "_", stem)
    return f"v{stem}_" if stem[0].isdigit() else f"{stem}_"


def _ascii(name: str) -> str:
    return "".join(c if c.isascii() else f"U{ord(c):x}U" for c in name)


def plain(name: str) -> str:
    """A relation or view as part of a C++ name; other characters than ASCII's letters and digits by their numbers.

    Names from a user have no capital U. One that begins with a digit may begin a name of C++ after it.
    """
    letters = "".join(c if c == "_" or (c.isascii() and c.isalnum()) else f"U{ord(c):x}U" for c in name)
    return f"U{letters}" if name[:1].isdigit() else letters


def named(*parts: str) -> str:
    """A name that the emitter makes of words and of identifiers."""
    return "_".join(part.removesuffix("_") for part in parts)


def unique(stem: str, taken: set[str]) -> str:
    name, i = stem, 1
    while name in taken:
        i += 1
        name = f"{stem}{i}_" if stem.endswith("_") else f"{stem}_{i}"
    taken.add(name)
    return name


def capital(name: str) -> str:
    """The name of a type: no two for two names, as camel case would have for a_b and a__b."""
    return name[:1].upper() + name[1:]


def camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
