"""How commands end: exit codes, Ctrl-C, a reader that leaves, a server that does; and what stays behind."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import longshore
from tests.servers import Endpoint, PostgreSQL, free_port
from tests.shell.running import Shell, alone, command, surroundings
from tests.terminal import seen_on_a_terminal

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


@contextlib.contextmanager
def started(*arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a command, which has ended by itself when the test is at its end."""
    with subprocess.Popen(
        command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=surroundings(),
    ) as child:
        try:
            yield child
        finally:
            child.kill()


ENDINGS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
#: Each command as it waits for the server or streams from it: `{url}` is the server's, `{table}` is locked there.
LONG = {
    "preview": ["read", SLEEPING, "--from", "{url}"],
    "read": ["read", SLEEPING, "--from", "{url}", "--to", "{here}/a.csv.gz"],
    "stream": ["read", STREAMING, "--from", "{url}", "--to", "{here}/a.parquet"],
    "write": ["write", "{here}/rows.csv", "--to", "{url}", "--table", "{table}", "--if-exists", "append"],
    "copy from": ["copy", STREAMING, "--from", "{url}", "--to", "sqlite:///{here}/a.db?mode=rwc", "--table", "t"],
    "copy to": ["copy", "SELECT 1 AS n", "--from", "sqlite://", "--to", "{url}", "-t", "{table}", "--if-exists=append"],
    "schema": ["schema", "{url}", "{table}"],
    "sql": ["sql", "FROM pg.{table}", "--attach", "pg={url}", "--to", "{here}/a.parquet"],
    "bench": ["bench", SLEEPING, "--from", "{url}", "--into", "numpy"],
    "demo": ["demo", "--from", "{url}", "--rows", "1000000000"],
}


@pytest.mark.costly
@pytest.mark.parametrize("number", ENDINGS)
@pytest.mark.parametrize("name", LONG)
def test_a_signal_ends_a_command(
    *, name: str, number: signal.Signals, postgres: Endpoint, harbour: str, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("n\n1\n")
    postgres.psql(f"CREATE TABLE {harbour}.t (n int)")
    application = f"shell_{name}_{number.name}".replace(" ", "_")
    places = {"url": postgres.url(application_name=application), "table": f"{harbour}.t", "here": tmp_path}
    with longshore.connect(postgres.url()) as connection:
        connection.execute(f"LOCK TABLE {harbour}.t")
        with started(*(argument.format(**places) for argument in LONG[name])) as child:
            # It imports what it needs first.
            wait(lambda: running(postgres, application), seconds=60)
            child.send_signal(number)
            out, errors = child.communicate(timeout=30)
        assert (child.returncode, out, errors) == (ENDINGS[number], b"", b"interrupted\n")
        wait(lambda: not running(postgres, application))
    assert postgres.psql(f"SELECT count(*) FROM {harbour}.t") == "0"
    assert postgres.psql("SELECT count(*) FROM pg_class WHERE relname LIKE 'longshore%'") == "0"
    assert {path.name for path in tmp_path.iterdir()} <= {"rows.csv", "a.db"}


def test_a_signal_ends_the_engine(tmp_path: Path) -> None:
    with started("sql", "FROM range(1000000000000)", "--to", str(tmp_path / "a.csv")) as child:
        wait(lambda: any(part.stat().st_size for part in tmp_path.glob(".*.part")))
        child.send_signal(signal.SIGTERM)
        out, errors = child.communicate(timeout=30)
    assert (child.returncode, out, errors) == (143, b"", b"interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_a_signal_that_comes_twice(postgres: Endpoint, tmp_path: Path) -> None:
    # A terminal that closes sends two, and timeout(1) as well: the second does not disturb the end.
    url = postgres.url(application_name="shell_twice")
    with started("read", STREAMING, "--from", url, "--to", str(tmp_path / "a.csv")) as child:
        wait(lambda: running(postgres, "shell_twice"))
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGHUP):
            child.send_signal(number)
        assert child.wait(30) in {129, 143}
    assert list(tmp_path.iterdir()) == []


def test_a_signal_that_python_drops() -> None:
    script = """
import signal, sys
from longshore.shell import signals

class Dropping:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)

signals.listen()
try:
    Dropping()
    while True:
        signal.pause()
except KeyboardInterrupt:
    signals.stop_repeating()
    sys.exit(signals.exit_code())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (143, "")


def test_a_signal_that_was_ignored_at_the_start(postgres: Endpoint, harbour: str) -> None:
    postgres.psql(f"CREATE TABLE {harbour}.t (n int)")
    with longshore.connect(postgres.url()) as connection:
        connection.execute(f"LOCK TABLE {harbour}.t")
        arguments = ["read", f"SELECT * FROM {harbour}.t", "--to", "-"]
        ignoring = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh"]
        with subprocess.Popen(
            [*ignoring, *command(*arguments, "--from", postgres.url(application_name="shell_nohup"))],
            stdout=subprocess.PIPE,
            env=surroundings(),
        ) as child:
            wait(lambda: running(postgres, "shell_nohup"), seconds=60)
            child.send_signal(signal.SIGHUP)
            # What it is told next still counts: the signal has been passed over by then.
            connection.commit()
            assert (child.communicate(timeout=30)[0], child.returncode) == (b"n\n", 0)


@pytest.mark.parametrize("arguments", [["--to", "-"], [], ["--json"]], ids=["data", "table", "object"])
def test_standard_output_that_is_closed(arguments: list[str], url: str) -> None:
    closing = ["sh", "-c", 'exec "$@" >&-', "sh"]
    done = subprocess.run(
        [*closing, *command("read", "SELECT 1 AS a", "--from", url, *arguments)],
        stderr=subprocess.PIPE,
        text=True,
        env=surroundings(),
        timeout=60,
        check=False,
    )
    assert done.returncode == 4
    assert "it is closed" in done.stderr
    assert "internal" not in done.stderr


def test_standard_streams_that_are_closed(lite: str) -> None:
    closing = ["sh", "-c", 'exec "$@" <&- 2>&-', "sh"]
    for arguments in (["bench", "SELECT 1 AS a", "--into", "numpy", "--repeat=1"], ["read", "SELECT 1 AS a"]):
        done = subprocess.run(
            [*closing, *command(*arguments, "--from", lite)],
            capture_output=True,
            env=surroundings(),
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")


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
    query = "SELECT generate_series(1, 10000) AS a"
    done = shell("read", query, "--from", url, "--to", "/dev/full", "--format", form)
    assert (done.code, done.out, done.errors) == (4, b"", "error: /dev/full: No space left on device\n")


@pytest.mark.parametrize("arguments", [["--to", "-"], [], ["--json"]], ids=["data", "table", "object"])
def test_a_full_disk_for_standard_output(arguments: list[str], url: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command("read", "SELECT generate_series(1, 10) AS a", "--from", url, *arguments),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=surroundings(),
            timeout=60,
            check=False,
        )
    assert done.returncode == 4
    assert "standard output: No space left on device" in done.stderr.replace('"', "")


def test_a_full_disk_for_a_file(shell: Shell, url: str, tmp_path: Path) -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limit[1]))
    try:
        for form in ("csv", "csv.gz", "parquet"):
            file = tmp_path / f"a.{form}"
            query = "SELECT md5(i::text) AS a FROM generate_series(1, 10000) AS i"
            done = shell("read", query, "--from", url, "--to", str(file))
            assert (done.code, done.out, done.errors) == (4, b"", f"error: {file}: File too large\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert list(tmp_path.iterdir()) == []


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
    environment = surroundings(TERM="xterm", COLUMNS="120")

    def run(errors: int) -> None:
        subprocess.run(
            command(*arguments), stdout=subprocess.DEVNULL, stderr=errors, env=environment, check=True, timeout=60
        )

    return seen_on_a_terminal(run)
