"""Which share of the lines of each package some tests run: ``python -m tests.coverage tests/rules``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

PACKAGE = Path("src") / "viewlet"
# Slipcover loads its plugin for pytest before pytest can rewrite it, which pytest warns of.
PYTEST = ["-m", "pytest", "-q", "-W", "ignore::pytest.PytestAssertRewriteWarning"]


def main(tests: list[str]) -> int:
    with TemporaryDirectory() as folder:
        out = Path(folder) / "lines.json"
        slipcover = ["-m", "slipcover", "--json", "--source", str(PACKAGE), "--out", str(out)]
        code = subprocess.run([sys.executable, *slipcover, *PYTEST, *tests]).returncode
        files = json.loads(out.read_text())["files"]
    run, missed = Counter[str](), Counter[str]()
    for name, lines in files.items():
        inside = Path(name).relative_to(PACKAGE).parts
        for room in ("all", inside[0] if len(inside) > 1 else "the API"):
            run[room] += len(lines["executed_lines"])
            missed[room] += len(lines["missing_lines"])
    for room in sorted(run, key=lambda room: (room == "all", room)):
        print(f"{room:10} {run[room] / max(1, run[room] + missed[room]):6.1%} of {run[room] + missed[room]:6} lines")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
