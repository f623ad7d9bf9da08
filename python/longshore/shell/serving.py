"""``serve``, a Flight SQL server, and ``users add``, which writes its file of users."""

import getpass
import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import longshore
from longshore import _core
from longshore.errors import InterfaceError, OperationalError
from longshore.shell import signals
from longshore.shell.arguments import Json
from longshore.shell.output import report, write_output

_ROLES = ("reader", "writer")


def serve(
    *,
    target: Annotated[str, typer.Argument(help="A store's URL, a DuckDB file, a folder of Parquet, or a database.")],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 is any that is free.")] = 31337,
    tls: Annotated[tuple[str, str] | None, typer.Option(help="PEM files of the certificate and of its key.")] = None,
    client_ca: Annotated[str | None, typer.Option(help="The authority that a client's certificate is of.")] = None,
    users: Annotated[str | None, typer.Option(help="The file that longshore users add writes.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Any host without --tls and --users.")] = False,
    max_connections: Annotated[int, typer.Option(help="Clients at once.")] = 100,
    max_sessions: Annotated[int, typer.Option(help="Sessions of what is served.")] = 16,
    max_rows: Annotated[int | None, typer.Option(help="The rows of a result.")] = None,
    statement_timeout: Annotated[float | None, typer.Option(help="Seconds for a statement and its rows.")] = None,
    idle_timeout: Annotated[float | None, typer.Option(help="Seconds for what no client asks for; else 300.")] = None,
    memory_limit: Annotated[str | None, typer.Option(help="What the SQL engine may take.")] = None,
) -> None:
    """Serve a database by Flight SQL, until Ctrl-C or SIGTERM. Calls are told on standard error as lines of JSON."""
    if client_ca is not None and tls is None:
        raise InterfaceError("--client-ca needs --tls")
    files = None if tls is None else (*tls, *([client_ca] if client_ca else []))
    server = longshore.serve(
        target,
        host=host,
        port=port,
        tls=files,
        auth=users,
        insecure=insecure,
        max_connections=max_connections,
        max_sessions=max_sessions,
        max_rows=max_rows,
        statement_timeout=statement_timeout,
        idle_timeout=idle_timeout,
        memory_limit=memory_limit,
        log=True,
    )
    with server:
        write_output(json.dumps({"url": server.url}))
        sys.stdout.flush()
        try:
            server.wait()
        except KeyboardInterrupt:
            # Both signals end it, as they should: that is not a failure.
            signals.stop_repeating()


def add(
    *,
    name: Annotated[str, typer.Argument(help="The user's name.")],
    file: Annotated[Path, typer.Option(help="The file of users; it is made where there is none.")] = Path("users"),
    role: Annotated[str, typer.Option(help="reader or writer.")] = "reader",
    as_json: Json = False,
) -> None:
    """Add a user of the server, or give one another password and role.

    The password is asked for, or comes by standard input.
    """
    if role not in _ROLES:
        raise InterfaceError(f"--role is reader or writer, not {role!r}")
    line = _core.user_line(name, _password(), role)
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    kept = [each for each in lines if each.partition(":")[0] != name]
    _write(file, "".join(f"{each}\n" for each in [*kept, line]))
    report({"user": name, "role": role, "file": str(file)}, f"{name}, a {role}, is in {file}", as_json=as_json)


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != password:
        raise InterfaceError("the two passwords are not the same")
    return password


def _write(file: Path, text: str) -> None:
    """Put the file into place at once; others than its owner may not read it."""
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        aside.replace(file)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise OperationalError(f"{file} cannot be written: {error.strerror}") from None
