"""One compiler run for each program, however many ask, whatever happened to the files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import viewlet
from viewlet.engines.native import build
from viewlet.engines.native.detached import _checksum
from viewlet.errors import Error

PROGRAM = """
#include "program.hpp"
namespace viewlet {
struct Program { Texts texts; Faults faults; };
inline constexpr Nothing RELATIONS, VIEWS, RESULTS, MAPS;
}
#include "bridge.hpp"
VIEWLET_MODULE(viewlet_native_empty, viewlet::Program)
"""
NOTHING = ((), (), ())


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A compiler that leaves a line in $RUNS for each run, and a cache with what all programs share."""
    directory = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIEWLET_CACHE", str(directory / "cache"))
        compiler = build.find_compiler()
        if compiler is None:
            pytest.skip("no C++ compiler")
        script = directory / "counted-c++"
        lines = [
            "#!/bin/sh",
            'echo "$@" >> "$RUNS"',
            "sleep ${DELAY:-0}",
            f'exec {" ".join(compiler.command)} "$@"',
            "",
        ]
        script.write_text("\n".join(lines))
        script.chmod(0o700)
        patch.setenv("CXX", str(script))
        patch.setenv("RUNS", str(directory / "runs"))
        assert build.build(PROGRAM) is not None
    for made in directory.glob("cache/*.so"):
        made.unlink()
        made.with_suffix(".sum").unlink()
    return script, directory / "cache"


@pytest.fixture(autouse=True)
def cache(prepared: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script, filled = prepared
    shutil.copytree(filled, tmp_path / "cache")
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("VIEWLET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def programs(log: Path) -> int:
    return sum(
        " -shared " in line and " -c " not in line and "probe" not in line for line in log.read_text().splitlines()
    )


def names(source: str = PROGRAM) -> object:
    module = build.open_module(source, "viewlet_native_empty")
    assert module is not None
    return module.names()


def built() -> Path:
    path = build.build(PROGRAM)
    assert path is not None
    return path


def test_many_processes_one_compiler_run(counted: Path) -> None:
    code = "import sys; from viewlet.engines.native.build import open_module\n"
    code += "print(open_module(sys.stdin.read(), 'viewlet_native_empty').names())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    asking = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(8)
    ]
    for process in asking:
        assert process.stdin is not None
        process.stdin.write(PROGRAM)
        process.stdin.close()
        process.stdin = None
    answers = [process.communicate()[0].strip() for process in asking]
    assert answers == [str(NOTHING)] * 8
    assert programs(counted) == 1


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), signal.SIGKILL)", "os.killpg(0, signal.SIGINT)"])
def test_a_script_that_ends_before_the_compiler_leaves_an_artefact(counted: Path, cache: Path, end: str) -> None:
    """However it ends. Whoever asks meanwhile waits for that compiler, and starts no other."""
    code = """if True:
        import os, signal, sys, threading, time
        from viewlet.engines.native.build import build
        threading.Thread(target=build, args=(sys.stdin.read(),), daemon=True).start()
        while not os.path.exists(os.environ["RUNS"]):
            time.sleep(0.01)
        """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DELAY": "0.5"}
    subprocess.run(
        [sys.executable, "-c", code + end],
        input=PROGRAM,
        text=True,
        env=environment,
        timeout=60,
        start_new_session=True,
        capture_output=True,
    )
    assert programs(counted) == 1
    compiler = build.find_compiler()
    assert compiler is not None
    assert not build.artefact(PROGRAM, compiler).exists(), "else it did not end before"
    assert names() == NOTHING
    assert programs(counted) == 1
    assert not list(cache.glob("*.tmp*"))


def test_the_second_time_costs_no_run(counted: Path) -> None:
    assert names() == names() == NOTHING
    runs = len(counted.read_text().splitlines())
    assert names() == NOTHING
    assert len(counted.read_text().splitlines()) == runs


@pytest.mark.parametrize("spoil", [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: b[:-1] + bytes([b[-1] ^ 1])])
def test_a_spoiled_artefact_is_built_again(counted: Path, spoil: object) -> None:
    path = built()
    whole = path.read_bytes()
    path.unlink()  # never in place: it may be mapped
    path.write_bytes(spoil(whole))  # type: ignore[operator]
    assert names() == NOTHING
    assert programs(counted) == 2


def test_a_spoiled_checksum_is_noticed(counted: Path) -> None:
    built().with_suffix(".sum").write_bytes(b"\xff\xfe")
    assert names() == NOTHING
    assert programs(counted) == 2


def test_an_artefact_that_python_does_not_load_is_built_again(counted: Path) -> None:
    path = built()
    path.unlink()
    path.write_text("checksum and all, but no shared object")
    path.with_suffix(".sum").write_text(_checksum(path))
    assert names() == NOTHING
    assert programs(counted) == 2


def test_no_half_written_files_stay(cache: Path) -> None:
    built()
    assert not list(cache.glob("*.tmp*"))
    with pytest.raises(Error):
        build.build("not C++")
    assert not list(cache.glob("*.tmp*"))


def test_a_compile_error_says_what_and_where(cache: Path) -> None:
    with pytest.raises(Error, match=r"(?s)did not compile.*source is in .*error") as caught:
        build.build(PROGRAM + "int broken = nobody_knows_this;")
    kept = Path(str(caught.value).split("source is in ")[1].splitlines()[0])
    assert kept.read_text().endswith("nobody_knows_this;")
    assert len(str(caught.value).splitlines()) <= build.SHOWN_LINES + 1


def test_every_source_has_its_own_artefact() -> None:
    compiler = build.find_compiler()
    assert compiler is not None
    assert build.artefact("a", compiler) != build.artefact("b", compiler)


# -- compilers ---------------------------------------------------------------------------------------------------------


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setitem(sys.modules, "ziglang", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert build.find_compiler() is None
    assert build.build(PROGRAM) is None
    assert build.open_module(PROGRAM, "viewlet_native_empty") is None


@pytest.mark.parametrize("wrong", ["/nowhere/c++", "false", "true", "'unclosed", ""])
def test_a_wrong_cxx_is_passed_over(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("CXX", wrong)
    compiler = build.find_compiler()
    assert compiler is not None
    assert Path(compiler.command[0]).name not in ("false", "true")


def test_a_chosen_compiler_is_first() -> None:
    compiler = build.find_compiler()
    assert compiler is not None
    assert compiler.command[0].endswith("counted-c++")


# -- the cache directory -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("obstacle", ["a file", "/proc/nowhere"])
def test_a_cache_that_cannot_be_made_is_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, obstacle: str
) -> None:
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("VIEWLET_CACHE", str(tmp_path / obstacle))
    assert names() == NOTHING
    assert build.cache_directory() == build._own_directory()


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_read_only_cache_is_replaced(cache: Path) -> None:
    cache.chmod(0o500)
    try:
        assert names() == NOTHING
        assert build.cache_directory() == build._own_directory()
    finally:
        cache.chmod(0o700)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_cache_that_others_can_write_is_refused(cache: Path, mode: int) -> None:
    """What lies there is loaded, so whoever writes there runs code as this user."""
    built()
    cache.chmod(mode)
    try:
        for use in (build.cache_directory, names):
            with pytest.raises(Error, match=r"cache keeps compiled programs and must be .* chmod go-w it"):
                use()
    finally:
        cache.chmod(0o700)
    assert names() == NOTHING


def test_a_cache_of_another_user_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.raises(Error, match="must be this user's own"):
        build.cache_directory()


def test_a_database_goes_on_without_a_cache_that_it_may_trust(cache: Path) -> None:
    cache.chmod(0o777)
    try:
        with viewlet.connect(wait_native=True) as db:
            db.execute("CREATE STREAM r (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM r;")
            with pytest.warns(UserWarning, match="chmod go-w it"):
                db.insert("r", (1,))
            assert (db.tier, db.view("v").rows()) == ("python", [(1,)])
    finally:
        cache.chmod(0o700)


def test_a_file_that_others_could_write_is_built_again(counted: Path) -> None:
    path = built()
    path.chmod(0o766)
    assert names() == NOTHING
    assert programs(counted) == 2
    assert path.stat().st_mode & 0o777 == 0o700


def test_a_link_in_place_of_a_file_is_not_followed(counted: Path, tmp_path: Path) -> None:
    path = built()
    other = tmp_path / "elsewhere.so"
    path.rename(other)
    other.chmod(0o777)
    path.symlink_to(other)
    assert names() == NOTHING
    assert programs(counted) == 2
    assert not path.is_symlink()


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VIEWLET_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert build.cache_directory() == tmp_path / "xdg" / "viewlet"


def test_the_cache_keeps_the_newest(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setattr(build, "KEPT_ARTEFACTS", 2)
    for i in range(4):
        old = cache / f"{i}.so"
        old.write_text("")
        old.with_suffix(".sum").write_text("")
        os.utime(old, (i, i))
    path = built()
    left = {p.name for p in (*cache.glob("*.so"), *cache.glob("*.o"))}
    assert len(left) == 2
    assert path.name in left
    assert {p.stem for p in cache.glob("*.sum")} <= {Path(name).stem for name in left}
