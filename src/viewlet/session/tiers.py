"""Two tiers: generated Python answers at once, the native program takes over when it is compiled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from viewlet.engines.native.compiled import Compiled, compile_program
from viewlet.engines.native.emit.watch import UNWATCHED, Watched
from viewlet.engines.native.engine import NativeEngine
from viewlet.errors import Error, warn
from viewlet.program.kinds import Unfit
from viewlet.program.trigger import Program, Script
from viewlet.threads.spread import CompiledCells, compile_cells, spread_over

WORTH_HANDING_OVER = 20_000  # rows that take Python longer to compute views from than a user waits for without notice
HEAD_START = 0.2  # seconds in which the first answers have the processor for themselves
NO_COMPILER = (
    "no C++ compiler was found (g++, clang++, or the ziglang package from PyPI): views are kept fresh by generated "
    "Python, which is slower; pip install ziglang brings one"
)


Made = Compiled | CompiledCells
ON_PYTHON = "views are kept fresh by generated Python, which is slower and just as right"


def warm(program: Program, watched: Watched, engine: NativeEngine) -> None:
    """Let the compiler do its work before the turn of the call that needs it: nobody waits, and the cache has it then.

    Where there is no machine code for the program, that call finds out why.
    """
    with suppress(Unfit, Error):
        compiled = compile_program(program, watched, checks_keys=True)
        if compiled is not None:
            NativeEngine.part_to_fill(compiled, engine)


def natively(program: Program, watched: Watched, script: Script | None, threads: int) -> Made | None:
    """Machine code for one thread, or for the cells of several, where the script can be divided."""
    spread = None if script is None or threads == 1 else spread_over(script, program, threads)
    if spread is None or spread.grid.cells == 1:
        return compile_program(program, watched, checks_keys=True)
    return compile_cells(spread, watched)


class NativeBuild:
    """The native program of a database in the making; ``wanted`` says whether anybody still waits for it."""

    def __init__(
        self,
        program: Program,
        wanted: Callable[[], bool],
        *,
        at_once: bool,
        watched: Watched = UNWATCHED,
        script: Script | None = None,
        threads: int = 1,
    ) -> None:
        """``script`` is what the program was made of, where it is to run in several ``threads``."""
        self.program, self.watched, self._wanted = program, watched, wanted
        self._script, self._threads = script, threads
        self._delay = 0.0 if at_once else HEAD_START
        self._hurry = threading.Event()
        self._compiled: Made | None = None
        self._unwanted = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="viewlet native build", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._hurry.wait(self._delay)
        if not self._wanted():
            self._unwanted = True
            return
        try:
            self._compiled = natively(self.program, self.watched, self._script, self._threads)
        except BaseException as error:  # raised where the result is asked for
            self._failure = error

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def wait(self) -> None:
        self._hurry.set()
        self._thread.join()

    def take(self) -> Made | None:
        """The program, or None where generated Python goes on, which one warning says."""
        if isinstance(self._failure, Unfit):
            _say_once(f"there is no machine code for this program: {self._failure}; {ON_PYTHON}")
        elif self._failure is not None:
            what = str(self._failure) if isinstance(self._failure, Error) else repr(self._failure)
            _say_once(f"{what}\n{ON_PYTHON}")
        elif self._compiled is None and not self._unwanted:
            _say_once(NO_COMPILER)
        return self._compiled


_said: set[str] = set()


def _say_once(sentence: str) -> None:
    if sentence not in _said:
        _said.add(sentence)
        warn(sentence)
