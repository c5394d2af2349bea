"""A program on its way from the driver to the cells: its text, and machine code for the driver's platform.

An executor of the same platform loads that; another one compiles the text itself; where it cannot, generated Python
keeps the views, slower and just as right.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from viewlet.durable.chain import Json
from viewlet.durable.store import Store, digest
from viewlet.engines.native.compiled import Compiled, compile_program
from viewlet.engines.native.emit.watch import Watched
from viewlet.engines.native.ship import Shipped, platform_tag, ship, unship
from viewlet.errors import Error
from viewlet.program.kinds import Unfit
from viewlet.program.trigger import Program
from viewlet.spark.process.cell import Cell, open_cell
from viewlet.spark.process.protocol import Message
from viewlet.spark.process.server import say
from viewlet.spark.process.ticket import Artefact, SharedObject

__all__ = ["Artefact", "packed", "publish", "unpacked"]


def publish(store: Store, program: Program, results: Sequence[str], views: Sequence[str] = ()) -> Artefact:
    """The driver's part. ``results`` and ``views`` are those whose changes the cells will be asked for."""
    text = program.to_text()
    name = digest(json.dumps([text, list(results), list(views)]).encode())
    file = store.write(f"program/{name}/program.txt", text.encode())
    objects = {}
    if (compiled := _compiled(program, Watched(tuple(results), tuple(views)))) is not None:
        tag, shipped = platform_tag(), ship(compiled)
        written = store.write(f"program/{name}/{tag}.so", shipped.code)
        objects[tag] = SharedObject(shipped.module, shipped.digest, written)
    return Artefact(name, file, tuple(results), tuple(views), objects)


def packed(store: Store, artefact: Artefact) -> tuple[Json, list[Any]]:
    """What a keeper needs of it, as a message: it has no store of its own, since that might not survive its forks."""
    header: Json = {"id": artefact.id, "results": artefact.results, "views": artefact.views, "shipped": None}
    buffers = [store.checked(artefact.text)]
    if (shared := artefact.objects.get(platform_tag())) is not None:
        header["shipped"] = [shared.module, shared.digest]
        buffers.append(store.checked(shared.file))
    return header, buffers


def unpacked(message: Message, directory: Path) -> Callable[[], Cell]:
    """A function that opens fresh cells of the program."""
    given, buffers = message.header["artefact"], message.buffers
    program = Program.from_text(bytes(buffers[0]).decode())
    watched = Watched(tuple(given["results"]), tuple(given["views"]))
    compiled = None
    if given["shipped"] is not None:
        module, digest_ = given["shipped"]
        compiled = unship(Shipped(module, digest_, buffers[1]), program, watched, directory)
    if compiled is None:
        compiled = _compiled_or_not(program, watched)
    return lambda: open_cell(program, compiled, watched.results, watched.views)


def _compiled(program: Program, watched: Watched) -> Compiled | None:
    try:
        return compile_program(program, watched)
    except Unfit:
        return None


def _compiled_or_not(program: Program, watched: Watched) -> Compiled | None:
    try:
        return _compiled(program, watched)
    except Error as error:  # a compiler that fails where nobody looks
        say(f"{error}; generated Python goes on")
        return None
