"""``viewlet shell``: statements and commands, piped and typed, and what becomes of mistakes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from viewlet.cli.shell import is_whole, statements

COMMAND = [sys.executable, "-c", "from viewlet.cli.main import app; app()", "shell"]
SCRIPT = """
CREATE STREAM bids (broker BIGINT NOT NULL, price DECIMAL(6,2)); -- a comment; with a semicolon
CREATE MATERIALIZED VIEW best AS
  SELECT broker, max(price) AS price FROM bids GROUP BY broker;
INSERT INTO bids VALUES (7, 10.50), (8, NULL), (7, 11);
"""


def shell(text: str, *given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *given], input=text, capture_output=True, text=True, timeout=60)


def test_statements_end_where_a_semicolon_is_one() -> None:
    lines = ["SELECT ';'\n", "FROM t; \n", "\\d t\n", "SELECT 1 -- ;\n", ";\n", "  \n", "SELECT 2"]
    assert list(statements(lines)) == ["SELECT ';'\nFROM t;", "\\d t", "SELECT 1 -- ;\n;", "SELECT 2"]
    assert not is_whole("SELECT 'a;")
    assert not is_whole("/* ;")


def test_a_script_is_followed_without_a_prompt() -> None:
    done = shell(SCRIPT + "SELECT broker, price FROM best ORDER BY broker;\n\\d\n\\d best\n\\explain best\n\\?\n")
    assert (done.returncode, done.stderr) == (0, "")
    for shown in ("11.00", "NULL", "2 rows", "stream", "DECIMAL(6,2)", "O(", "\\watch"):
        assert shown in done.stdout
    assert "viewlet>" not in done.stdout


def test_a_directory_is_there_again(tmp_path: Path) -> None:
    assert shell(SCRIPT, str(tmp_path / "data")).returncode == 0
    done = shell("FROM best;", str(tmp_path / "data"))
    assert "11.00" in done.stdout


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("SELEC 1;", 2, "SELEC"),
        ("SELECT * FROM nothing;", 2, "nothing"),
        ("\\x", 2, "there is no command \\x"),
        ("\\d nothing", 2, "there is no stream, table or view nothing; there are: "),
        ("\\watch", 2, "\\watch VIEW SECONDS"),
        ("CREATE STREAM s (a BIGINT PRIMARY KEY); INSERT INTO s VALUES (1); INSERT INTO s VALUES (1);", 3, "already"),
    ],
)
def test_the_first_mistake_ends_a_script(text: str, code: int, said: str) -> None:
    done = shell(f"{text}\nSELECT 42;\n")
    assert done.returncode == code
    assert said in done.stderr
    assert "42" not in done.stdout


def test_somebody_types(tmp_path: Path) -> None:
    """A prompt, one for further lines, an error that is survived, history for the next time."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "dumb"}
    process = subprocess.Popen(COMMAND, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    seen = ""

    def wait_for(text: str) -> None:
        nonlocal seen
        end = time.monotonic() + 60
        while text not in seen:
            assert time.monotonic() < end, seen
            seen += os.read(ours, 4096).decode()
        seen = seen.split(text, 1)[1]

    wait_for("viewlet> ")
    os.write(ours, b"SELEC 1;\n")
    wait_for("SELEC")
    wait_for("viewlet> ")
    os.write(ours, b"SELECT 40\n")
    wait_for("...> ")
    os.write(ours, b"+ 2 AS answer;\n")
    wait_for("42")
    os.write(ours, b"\\timing\n")
    wait_for("ms")
    os.write(ours, b"\\q\n")
    assert process.wait(60) == 0
    os.close(ours)
    assert "SELECT 40" in (tmp_path / "viewlet" / "history").read_text()
