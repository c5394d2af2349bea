"""How fast the native engine's map is: ns per update, insert and churn, the longest pause, bytes per entry.

``python -m bench.maps`` builds and runs ``bench/maps.cpp``. The row "inline" is the simplest open addressing with keys
and values in one array, without growth, erasing or stable entries. "churn" is one entry erased and another inserted.
Times are CPU times. The pause is the longest single insert while the map grows, the least of four runs; where the host
of a virtual machine must first find a huge page's memory, that is what it shows.

The second table: loops over slices as lists and in chunks (``read_often``), ns for each entry met; "waiting" if each
loop needs the one before.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import viewlet

SOURCE = Path(__file__).with_suffix(".cpp")
RUNTIME = Path(viewlet.__file__).parent / "engines" / "native" / "runtime"
FLAGS = ["-std=c++20", "-O2", "-fno-exceptions", "-fno-rtti", "-march=native", f"-I{RUNTIME}"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.maps", description=__doc__.splitlines()[0])
    parser.add_argument("entries", nargs="*", type=int, default=[10_000, 1_000_000, 10_000_000], help="sizes of maps")
    options = parser.parse_args(arguments)
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        parser.error("no C++ compiler: install g++ or clang++")
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "maps")
        subprocess.run([compiler, *FLAGS, str(SOURCE), "-o", program], check=True)
        return subprocess.run([program, *map(str, options.entries)]).returncode


if __name__ == "__main__":
    sys.exit(main())
