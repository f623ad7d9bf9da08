"""The engine's settings, failures, memory and end."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import longshore
from longshore.duckdb.instance import Instance
from longshore.duckdb.waiting import run_on_thread, running_tasks
from longshore.options import Options
from tests.sql.interrupting import remaining
from tests.sql.rows import rows

pytestmark = pytest.mark.packages

#: It would run for hours.
ENDLESS = "SELECT sum(a.range * b.range % 7) AS s FROM range(10_000_000) a, range(10_000_000) b"


def _spills() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob(f"longshore-{os.getpid()}-*")}


def test_instants_are_utc_whatever_the_machine_says() -> None:
    code = (
        "import longshore, pyarrow\n"
        "t = longshore.sql(\"SELECT TIMESTAMPTZ '2026-01-01 00:00:00' AS t, current_setting('TimeZone') AS z\","
        " return_type='arrow')\n"
        "print(t.schema.field('t').type, t.column('t').cast(pyarrow.timestamp('us')).to_pylist()[0], t.column('z')[0])"
    )
    environment = {**os.environ, "TZ": "Asia/Tokyo"}
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    assert ran.stdout == "timestamp[us, tz=UTC] 2026-01-01 00:00:00 UTC\n"
    assert ran.stderr == ""


def test_a_thread_that_finds_no_memory_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        # Its arguments are dropped, as the interpreter drops them when it has no room for the first frame.
        patched.setattr("_thread.start_new_thread", lambda _function, _arguments: 0)
        with pytest.raises(MemoryError):
            longshore.sql("SELECT 1 AS a")
        assert run_on_thread(lambda: 5) == 5
    assert rows("SELECT 1 AS a") == [{"a": 1}]


def test_threads_and_memory_are_the_engines() -> None:
    query = "SELECT current_setting('threads')::INT AS threads, current_setting('memory_limit') AS memory"
    assert rows(query, options={"threads": 1, "memory_limit": "64MiB"}) == [{"threads": 1, "memory": "64.0 MiB"}]


def test_settings_and_tables_of_one_call_are_gone_in_the_next() -> None:
    before = rows("SELECT current_setting('threads')::INT AS n")
    assert rows("SET threads = 1; SELECT current_setting('threads')::INT AS n") == [{"n": 1}]
    assert rows("SELECT current_setting('threads')::INT AS n") == before
    assert longshore.sql("CREATE TABLE left_behind AS SELECT 1 AS x", return_type="arrow").num_rows == 1
    assert longshore.sql("SET threads = 1") is None
    assert longshore.sql("ATTACH ':memory:' AS aside") is None
    for query in ("SELECT * FROM left_behind", "SELECT * FROM aside.main.t"):
        with pytest.raises(longshore.ProgrammingError):
            rows(query)


@pytest.mark.parametrize(
    ("query", "explain"),
    [
        ("EXPLAIN ANALYZE CREATE TABLE explained AS SELECT 1 AS x", False),
        ("EXPLAIN CREATE TABLE explained AS SELECT 1 AS x", False),
        ("CREATE TABLE explained AS SELECT 1 AS x", True),
    ],
)
def test_what_is_explained_is_gone_in_the_next_call(query: str, *, explain: bool) -> None:
    assert longshore.sql(query, explain=explain) is not None  # type: ignore[call-overload]
    with pytest.raises(longshore.ProgrammingError, match="explained"):
        rows("FROM explained")


def test_the_memory_limit_follows_what_the_system_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance(Options())

    def limited(left: int) -> str:
        monkeypatch.setattr("longshore._core.memory_left", lambda: left)
        instance.limit_memory(Options())
        with contextlib.closing(instance.connection()) as connection:
            return str(connection.execute("SELECT current_setting('memory_limit')").fetchone()[0])

    plenty = limited(1 << 50)
    assert limited(1000 << 20) == "800.0 MiB"
    # A fiftieth more or less is not worth a statement.
    assert limited(980 << 20) == limited(1020 << 20) == "800.0 MiB"
    assert limited(900 << 20) == "720.0 MiB"
    assert limited(1 << 50) == plenty
    instance.close()


def test_a_result_larger_than_the_memory_limit_spills_and_leaves_nothing() -> None:
    before = _spills()
    ordered = "SELECT i FROM range(3_000_000) t(i) ORDER BY hash(i)::VARCHAR || 'padding' LIMIT 2_999_999"
    query = f"SELECT count(*) AS n FROM ({ordered})"
    found = rows(query, options={"memory_limit": "80MB", "threads": 2})
    assert found == [{"n": 2_999_999}]
    assert _spills() == before
    assert not Path(".tmp").exists()


def test_a_stream_that_spills_leaves_nothing_when_it_is_closed() -> None:
    before = _spills()
    query = "SELECT hash(i)::VARCHAR || 'padding' AS s FROM range(3_000_000) t(i) ORDER BY s"
    with longshore.sql(query, return_type="arrow_stream", options={"memory_limit": "80MB", "threads": 2}) as stream:
        assert next(stream).num_rows > 0
        assert _spills() != before
    # The engine may still be ending.
    deadline = time.monotonic() + 10
    while _spills() != before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert _spills() == before


def test_what_cannot_spill_is_an_error() -> None:
    query = "SELECT list(i) AS l FROM range(20_000_000) t(i)"
    with pytest.raises(longshore.MemoryLimitError, match=r"[Mm]emory"):
        rows(query, options={"memory_limit": "40MB"})


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("SELEC 1", longshore.ProgrammingError),
        ("SELECT nothing", longshore.ProgrammingError),
        ("SELECT no_such_function(1)", longshore.ProgrammingError),
        ("", longshore.ProgrammingError),
        ("-- nothing", longshore.ProgrammingError),
        ("SELECT * FROM 'no/such/file.parquet'", longshore.OperationalError),
        ("SELECT 'a'::INT", longshore.DataError),
        ("SELECT sum(x) FROM (VALUES ('a')) t(x)", longshore.ProgrammingError),
        ("CREATE TABLE t (x INT PRIMARY KEY); INSERT INTO t VALUES (1), (1)", longshore.IntegrityError),
    ],
)
def test_failures_are_of_this_librarys_kinds(query: str, kind: type[longshore.Error]) -> None:
    with pytest.raises(kind):
        rows(query)


def test_a_value_that_fails_in_the_last_row_is_an_error() -> None:
    data = pa.table({"x": ["1"] * 300_000 + ["no number"]})
    with pytest.raises(longshore.DataError, match="no number"):
        rows("SELECT x::INT AS x FROM data", data=data)


def test_an_internal_error_does_not_end_the_next_query() -> None:
    """Some errors end an instance of the engine for good, which others use as well."""
    data = pa.table({"x": pa.array([2**63 - 2], pa.timestamp("us"))})
    with contextlib.suppress(longshore.Error):
        rows("SELECT x::VARCHAR AS x FROM data", data=data)
    assert rows("SELECT 1 AS x") == [{"x": 1}]


@pytest.mark.parametrize("return_type", ["arrow", "pandas", "arrow_stream"])
@pytest.mark.parametrize("query", ["SELECT upper(s) FROM data", "COPY (SELECT upper(s) FROM data) TO '/dev/null'"])
def test_an_internal_error_while_a_query_runs_does_not_end_the_next(query: str, return_type: Any) -> None:
    """Texts that are none are such an error in functions of texts."""
    data = pa.table(
        {"s": pa.Array.from_buffers(pa.string(), 1, [None, *map(pa.py_buffer, (b"\0\0\0\0\1\0\0\0", b"\xff"))])}
    )
    with pytest.raises(longshore.InternalError):
        list(longshore.sql(query, return_type=return_type, data=data))
    assert rows("SELECT 1 AS x") == [{"x": 1}]


def test_an_instance_that_has_ended_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    from longshore.duckdb.instance import Instance, shared

    assert rows("SELECT 1 AS x") == [{"x": 1}]
    ended = shared._instance  # noqa: SLF001  no one else asks for it
    assert ended is not None
    failed: list[str] = []

    class Ruined:
        """A connection that answers as an ended instance does."""

        def __init__(self, connection: Any) -> None:
            self._connection = connection

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

        def sql(self, *_arguments: Any, **_keywords: Any) -> Any:
            failed.append("sql")
            message = "FATAL Error: database has been invalidated because of a previous fatal error."
            raise duckdb.FatalException(message)

    connection = Instance.connection
    monkeypatch.setattr(
        Instance, "connection", lambda self: Ruined(connection(self)) if self is ended else connection(self)
    )
    monkeypatch.setattr(Instance, "is_usable", lambda self: self is not ended)
    data = pa.table({"x": [1]})
    assert rows("SELECT mine.x + data.x AS x FROM mine, data", mine=data, data=data) == [{"x": 2}]
    assert failed == ["sql"]


def test_ctrl_c_ends_a_query(tmp_path: Path) -> None:
    _interrupted(ENDLESS, tmp_path)


def test_ctrl_c_ends_a_copy(tmp_path: Path) -> None:
    _interrupted(f"COPY ({ENDLESS}) TO '{tmp_path}/x.csv'", tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
@pytest.mark.parametrize("options", [None, {"threads": 1}])
def test_ctrl_c_leaves_a_file_that_does_not_open(options: Any, tmp_path: Path) -> None:
    fifo = tmp_path / "boats.csv"
    os.mkfifo(fifo)
    assert not running_tasks
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        longshore.sql(f"SELECT * FROM read_csv('{fifo}')", options=options)
    assert time.monotonic() - started < 5
    # The engine goes on with other queries, and the one that was left ends with its file.
    assert rows("SELECT 1 AS x, 'y' AS y") == [{"x": 1, "y": "y"}]
    assert running_tasks
    fifo.write_text("a\n1\n")
    assert remaining() == (0, 0)


def _interrupted(query: str, directory: Path) -> None:
    # What imports a library may swallow a Ctrl-C.
    first = f"longshore.sql('SELECT 1'); longshore.sql(\"COPY (SELECT 1) TO '{directory}/first.csv'\")"
    code = f"import longshore; {first}; print('go', flush=True); longshore.sql({query!r})"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as ran:
        try:
            assert ran.stdout is not None
            assert ran.stdout.readline() == "go\n"
            time.sleep(0.3)
            started = time.monotonic()
            ran.send_signal(signal.SIGINT)
            _, errors = ran.communicate(timeout=20)
        finally:
            ran.kill()
    assert "KeyboardInterrupt" in errors
    assert time.monotonic() - started < 5


def test_a_stream_is_lazy_and_its_end_stops_the_engine() -> None:
    started = time.monotonic()
    query = "SELECT range AS n FROM range(1_000_000_000_000)"
    stream = longshore.sql(query, return_type="arrow_stream")
    first = next(iter(stream))
    assert first.column(0)[0].as_py() == 0
    del stream, first
    gc.collect()
    assert time.monotonic() - started < 10
    assert rows("SELECT 1 AS x") == [{"x": 1}]


def test_a_stream_outlives_its_callers_variables() -> None:
    def begun() -> Any:
        data = pa.table({"x": list(range(100_000))})
        stream = longshore.sql("SELECT x FROM data", return_type="arrow_stream")
        assert data.num_rows == 100_000
        return stream

    stream = begun()
    gc.collect()
    assert sum(batch.num_rows for batch in stream) == 100_000


def test_many_threads_at_once() -> None:
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        data = pa.table({"x": list(range(number))})
        found[number] = rows("SELECT count(*) AS n FROM data", data=data)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [{"n": number}] for number in range(1, 9)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_asks_an_engine_of_its_own() -> None:
    code = (
        "import os, warnings, longshore\nwarnings.simplefilter('ignore')\n"
        "longshore.sql('SELECT 1', return_type='arrow')\n"
        "try:\n    longshore.sql('SELEKT 1')\nexcept longshore.ProgrammingError:\n    pass\n"
        "child = os.fork()\n"
        "found = longshore.sql('SELECT 2 AS x', return_type='arrow').to_pylist()\n"
        "assert found == [{'x': 2}]\n"
        "if child:\n    assert os.waitpid(child, 0)[1] == 0\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("options", [None, {"threads": 2}])
def test_a_fork_next_to_queries(options: Any) -> None:
    code = f"""if True:
        import os, select, sys, threading, time, warnings, longshore, pyarrow as pa
        warnings.simplefilter("ignore")
        data = pa.table({{"x": range(5000)}})
        query, failed, answered = "SELECT sum(x) AS x FROM data", [], []
        end = time.monotonic() + 1
        def ask():
            while time.monotonic() < end:
                try:
                    answered.append(longshore.sql(query, return_type="arrow", options={options}).to_pylist())
                except BaseException as error:
                    failed.append(error)
        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        many = "SELECT range AS x FROM range(10_000_000)"
        stream = longshore.sql(many, return_type="arrow_stream", options={options})
        begun = next(stream).num_rows
        while time.monotonic() < end:
            begins, told = os.pipe()
            child = os.fork()
            if not child:
                os.write(told, b".")
                break
            if not select.select([begins], [], [], 20)[0]:
                # Python 3.11 itself may hang in a child before any code runs: another thread was making its state.
                assert sys.version_info < (3, 12)
                os.kill(child, 9)
            else:
                assert os.waitpid(child, 0)[1] == 0
            os.close(begins)
            os.close(told)
        if child:
            for thread in threads:
                thread.join()
            assert not failed, failed[0]
            assert all(rows == [{{"x": 12497500}}] for rows in answered) and answered
            assert sum(batch.num_rows for batch in stream) + begun == 10_000_000
            assert longshore.sql(query, return_type="arrow").to_pylist() == [{{"x": 12497500}}]
        else:
            # It may not ask anything: a lock that another thread had at the fork is held for ever.
            try:
                next(stream)
            except longshore.InterfaceError as error:
                assert "forked" in str(error)
            del stream
            # Nor may the interpreter end in it, for the same reason.
            os._exit(0)
    """
    ran = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120)
    # What a child has inherited of DuckDB is told of as leaked when the child ends.
    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), ran.stderr


def test_explain_runs_nothing(tmp_path: Path) -> None:
    plan = longshore.sql(f"COPY (SELECT 1 AS x) TO '{tmp_path}/x.csv'", explain=True)
    assert "CSV" in plan
    assert not (tmp_path / "x.csv").exists()


def test_a_wrong_argument_costs_no_query(tmp_path: Path) -> None:
    with pytest.raises(longshore.InterfaceError, match="unknown return_type"):
        longshore.sql(f"COPY (SELECT 1 AS x) TO '{tmp_path}/x.csv'", return_type="excel")
    assert not (tmp_path / "x.csv").exists()


def test_a_url_in_the_place_of_a_return_type_is_not_shown() -> None:
    with pytest.raises(longshore.InterfaceError, match="unknown return_type a URL") as caught:
        longshore.sql("SELECT 1", return_type="postgresql://me:secret@pier/db")
    assert "secret" not in str(caught.value)


def test_explain_gives_the_plan() -> None:
    data = pa.table({"x": [1], "y": [2]})
    plan = longshore.sql("SELECT x FROM data WHERE x > 1", explain=True, data=data)
    assert isinstance(plan, str)
    assert "x > 1" in plan


def test_arguments_that_are_none() -> None:
    with pytest.raises(longshore.InterfaceError, match="query is a text"):
        longshore.sql(5)  # type: ignore[call-overload]
    with pytest.raises(longshore.InterfaceError, match="explain"):
        longshore.sql("SELECT 1", explain="yes")  # type: ignore[call-overload]
    with pytest.raises(longshore.InterfaceError, match="unknown return_type"):
        longshore.sql("SELECT 1", return_type="excel")
    with pytest.raises(longshore.InterfaceError, match="unknown option 'thread'"):
        longshore.sql("SELECT 1", options={"thread": 1})
    with pytest.raises(longshore.InterfaceError, match="lone surrogate"):
        longshore.sql("SELECT '\ud800'")


def test_nothing_of_the_engine_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, longshore; print({'duckdb', 'sqlglot', 'pyarrow', 'pandas'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout == "set()\n"


@pytest.mark.parametrize("options", [None, {"threads": 1}])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n FROM a LEFT JOIN b ON a.id = b.id AND b.closed IS NULL WHERE b.id IS NULL",
        "SELECT count(*) AS n FROM b RIGHT JOIN a ON a.id = b.id AND b.closed IS NULL WHERE b.id IS NULL",
        "SELECT count(*) AS n FROM a LEFT JOIN (FROM b WHERE closed IS NULL) AS b ON a.id = b.id WHERE b.id IS NULL",
    ],
)
def test_an_anti_join_loses_no_condition(query: str, options: Any) -> None:
    a = pa.table({"id": range(2000)})
    b = pa.table({"id": range(2000), "closed": [None if number % 2 else 1.0 for number in range(2000)]})
    assert rows(query, a=a, b=b, options=options) == [{"n": 1000}]
