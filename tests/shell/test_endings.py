"""How commands end: exit codes, Ctrl-C, a reader that leaves, a server that does; and what stays behind."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import longshore
from tests.servers import Endpoint, PostgreSQL, free_port
from tests.shell.running import Shell, alone, command, surroundings

STREAMING = "SELECT repeat('x', 100) AS t, generate_series(1, 500000000) AS i"
SLEEPING = "SELECT pg_sleep(60)::text AS t"


def running(postgres: Endpoint, name: str) -> bool:
    """Tell whether a statement of the application `name` runs on the server."""
    query = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}' AND state <> 'idle'"
    return postgres.psql(query) != "0"


def wait(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)


def started(*arguments: str, errors: int = subprocess.PIPE) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command(*arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=surroundings()
    )


@pytest.mark.parametrize(
    ("verb", "query", "number", "code"),
    [
        ("preview", SLEEPING, signal.SIGINT, 130),
        ("read", SLEEPING, signal.SIGINT, 130),
        ("read", STREAMING, signal.SIGINT, 130),
        ("read", STREAMING, signal.SIGTERM, 143),
        ("copy", STREAMING, signal.SIGINT, 130),
        ("copy", SLEEPING, signal.SIGTERM, 143),
        ("bench", SLEEPING, signal.SIGINT, 130),
        ("bench", STREAMING, signal.SIGTERM, 143),
    ],
)
def test_a_signal_ends_the_query(
    *, verb: str, query: str, number: signal.Signals, code: int, postgres: Endpoint, tmp_path: Path
) -> None:
    name = f"shell_{verb}_{number.name}_{'sleep' in query}"
    place = ["--from", postgres.url(application_name=name)]
    arguments = {
        "preview": ["read", query, *place],
        "read": ["read", query, *place, "--to", str(tmp_path / "a.parquet")],
        "copy": ["copy", query, *place, "--to", f"sqlite:///{tmp_path}/a.db?mode=rwc", "--table", "t"],
        "bench": ["bench", query, *place, "--into", "numpy"],
    }[verb]
    with started(*arguments) as child:
        wait(lambda: running(postgres, name))
        time.sleep(0.2)
        child.send_signal(number)
        sent = time.monotonic()
        out, errors = child.communicate(timeout=10)
        took = time.monotonic() - sent
    assert (child.returncode, out) == (code, b"")
    assert errors in {b"interrupted\n", b""}
    assert took < 5
    wait(lambda: not running(postgres, name))
    assert not list(tmp_path.glob("*.parquet")) + list(tmp_path.glob(".*.part"))


def test_a_signal_undoes_a_write(postgres: Endpoint, harbour: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    name = "shell_write"
    append = ["--if-exists", "append", "--table", f"{harbour}.t"]
    postgres.psql(f"CREATE TABLE {harbour}.t (n int)")
    with longshore.connect(postgres.url()) as connection:
        connection.execute(f"LOCK TABLE {harbour}.t")
        url = postgres.url(application_name=name)
        with started("write", str(tmp_path / "a.csv"), "--to", url, *append) as child:
            wait(lambda: running(postgres, name))
            time.sleep(0.2)
            child.send_signal(signal.SIGINT)
            assert child.wait(10) == 130
    wait(lambda: not running(postgres, name))
    assert postgres.psql(f"SELECT count(*) FROM {harbour}.t") == "0"


@pytest.mark.parametrize("form", ["csv", "json", "arrows", "parquet", "arrow"])
def test_a_reader_that_leaves(form: str, postgres: Endpoint) -> None:
    name = f"shell_pipe_{form}"
    with started(
        "read", STREAMING, "--from", postgres.url(application_name=name), "--to", "-", "--format", form
    ) as child:
        assert child.stdout
        assert len(child.stdout.read(10)) == 10
        child.stdout.close()
        assert child.stderr
        assert (child.stderr.read(), child.wait(10)) == (b"", 141)
    wait(lambda: not running(postgres, name))


@pytest.mark.parametrize("arguments", [["--to", "-"], [], ["--json"]], ids=["data", "table", "object"])
def test_a_reader_that_was_never_there(arguments: list[str], url: str) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        done = subprocess.run(
            command("read", "SELECT 1 AS a", "--from", url, *arguments),
            stdout=theirs,
            stderr=subprocess.PIPE,
            env=surroundings(),
            timeout=60,
            check=False,
        )
    finally:
        os.close(theirs)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("form", ["csv", "json", "arrow", "arrows", "parquet"])
def test_a_full_disk(form: str, shell: Shell, url: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    query = "SELECT generate_series(1, 10000) AS a"
    done = shell("read", query, "--from", url, "--to", "/dev/full", "--format", form)
    assert (done.code, done.out) == (4, b"")
    assert "No space left on device" in done.errors


def test_a_file_that_cannot_be_made(shell: Shell, url: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    done = shell("read", "SELECT 1 AS a", "--from", url, "--to", str(tmp_path / "a.csv"))
    assert (done.code, done.errors) == (4, f"error: {tmp_path}/a.csv: Is a directory\n")


@pytest.mark.parametrize(
    ("query", "code", "kind", "state"),
    [
        ("SELEC 1", 1, "ProgrammingError", "42601"),
        ("SELECT 1 / 0", 1, "DataError", "22012"),
        ("SELECT pg_sleep(60)::text", 124, "TimeoutError", None),
        ("SELECT pg_terminate_backend(pg_backend_pid())", 3, "OperationalError", "57P01"),
    ],
)
def test_codes_of_a_database(*, query: str, code: int, kind: str, state: str | None, shell: Shell, url: str) -> None:
    done = shell("read", query, "--from", url, "--timeout", "0.5", "--json")
    assert (done.code, done.out) == (code, b"")
    assert {"kind": kind, "code": code}.items() <= done.failure.items()
    assert state is None or done.failure["sqlstate"] == state
    assert set(done.failure) == {
        "kind", "message", "sqlstate", "detail", "hint", "position", "column", "row", "native_type", "code"
    }  # fmt: skip
    plain = shell("read", query, "--from", url, "--timeout", "0.5")
    assert plain.code == code
    assert plain.errors.startswith("error: ")


def test_a_server_that_is_not_there(shell: Shell) -> None:
    done = shell("read", "SELECT 1", "--from", f"postgresql://127.0.0.1:{free_port()}/x", "--json")
    assert (done.code, done.failure["kind"]) == (3, "OperationalError")
    assert done.failure["hint"]
    assert done.failure["hint"] not in done.failure["message"]


def test_a_server_that_is_killed(make_server: Callable[..., PostgreSQL], tmp_path: Path) -> None:
    server = make_server()
    file = tmp_path / "a.csv"
    with started("read", STREAMING, "--from", server.url(), "--to", str(file)) as child:
        wait(lambda: any(part.stat().st_size for part in tmp_path.glob(".*.part")))
        server.kill()
        _, errors = child.communicate(timeout=20)
    assert child.returncode == 3
    assert errors.startswith(b"error: ")
    assert list(tmp_path.iterdir()) == []


def test_a_library_that_is_missing(shell: Shell, lite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = shell("read", "SELECT 1", "--from", lite)
    assert (done.code, done.errors) == (5, "error: this command needs pyarrow: pip install 'longshore[arrow]'\n")


@pytest.mark.parametrize("library", ["typer", "rich"])
def test_without_the_extra(library: str) -> None:
    script = (
        f"import sys; sys.modules['{library}'] = None; import longshore.shell; sys.exit(longshore.shell.main(['read']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    expected = "the command needs typer and rich: pip install 'longshore[shell]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (5, "", expected)


def test_a_fault_of_ours_shows_no_frames(shell: Shell, lite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_given: object, **_named: object) -> None:
        message = "harbour"
        raise RuntimeError(message)

    monkeypatch.setattr("longshore.read_sql", fail)
    done = shell("read", "SELECT 1", "--from", lite)
    assert (done.code, done.errors) == (70, "error: internal error: RuntimeError: harbour\n")


def test_the_installed_command(url: str) -> None:
    program = Path(sys.executable).with_name("longshore")
    done = subprocess.run(
        [program, "read", "SELECT 1 AS a", "--from", url, "--json"], capture_output=True, check=True, timeout=60
    )
    assert json.loads(done.stdout)["rows"] == [[1]]


def test_a_bar_on_a_terminal_and_none_elsewhere(url: str, tmp_path: Path) -> None:
    query = "SELECT i, pg_sleep(0.002)::text AS s FROM generate_series(1, 200) AS i"
    arguments = ["read", query, "--from", url, "--to", str(tmp_path / "a.csv")]
    assert alone(*arguments).errors == ""
    assert "rows/s" in on_a_terminal(*arguments)
    assert on_a_terminal(*arguments, "--quiet") == ""


def on_a_terminal(*arguments: str) -> str:
    """Run the command with a terminal for its standard error, and return what is seen there."""
    ours, theirs = pty.openpty()
    seen: list[bytes] = []

    def look() -> None:
        try:
            while piece := os.read(ours, 4096):
                seen.append(piece)
        except OSError:
            # Linux's way to say that the other end is closed.
            return

    thread = threading.Thread(target=look)
    thread.start()
    try:
        environment = surroundings(TERM="xterm", COLUMNS="120")
        subprocess.run(
            command(*arguments), stdout=subprocess.DEVNULL, stderr=theirs, env=environment, check=True, timeout=60
        )
    finally:
        os.close(theirs)
        thread.join()
        os.close(ours)
    return b"".join(seen).decode()
