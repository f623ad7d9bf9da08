"""Tables of the test server, which cannot have any: what a session asks of one is answered."""

from collections.abc import Sequence

from tests.mssql.reading import prepare
from tests.mssql.test_statements import DESCRIBE, described
from tests.servers import MSSQL
from tests.tds.tokens import COMPUTED, IDENTITY, NULLABLE, UPDATABLE, Column, Count, Rows
from tests.tds.types import Type, nvarchar, simple, varbinary

_COLLATION = 0x00D00409


def _described(column: Column) -> tuple[object, ...]:
    kind = column.type
    token = kind.info[0]
    length = int.from_bytes(kind.info[1 : 3 if kind.length in {"short", "plp"} else 2], "little")
    precision, scale = (kind.info[2], kind.info[3]) if token in {0x6A, 0x6C} else (0, 0)
    if token in {0x29, 0x2A, 0x2B}:
        precision, scale = 0, kind.info[1]
    is_text = token in {0xA7, 0xAF, 0xE7, 0xEF}
    collation = (_COLLATION, 52) if is_text else (None, None)
    nullable = bool(column.flags & NULLABLE)
    rest = (None, 189 if kind.user_type == 80 else None, bool(column.flags & IDENTITY), bool(column.flags & COMPUTED))
    return (column.name, token, length, precision, scale, *collation, nullable, *rest, None, None)


def table(server: MSSQL, columns: Sequence[Column], *, rows: int = 1, keys: Sequence[tuple[str, str]] = ()) -> None:
    """Have the server say that it has the table `boats` of these columns, and that it takes rows of them."""
    prepare(server)
    server.answer("sys.objects", Rows([Column("type", nvarchar(2))], [("U ",)]), kind="rpc", match="contains")
    server.answer("sys.foreign_keys", Rows([Column("n", nvarchar(128))]), kind="rpc", match="contains")
    indexes = Rows([Column("i", nvarchar(10)), Column("n", nvarchar(128))], list(keys))
    server.answer("sys.indexes", indexes, kind="rpc", match="contains")
    server.answer(DESCRIBE, described(*map(_described, columns)), kind="rpc", match="contains")
    collations = [Column("colid", simple("int")), Column("name", nvarchar(128))]
    collations += [Column("tds_collation", varbinary(5)), Column("collation", nvarchar(128))]
    names = [
        (at + 1, column.name, bytes.fromhex("0904D00034"), "SQL_Latin1_General_CP1_CI_AS")
        if column.type.info[0] in {0xA7, 0xAF, 0xE7, 0xEF}
        else (at + 1, column.name, None, None)
        for at, column in enumerate(columns)
    ]
    transactions = Rows([Column("n", simple("int"))], [(1,)])
    server.answer("FMTONLY", transactions, Rows(columns), Rows(collations, names), kind="batch", match="contains")
    server.answer("INSERT BULK", Count(), kind="batch", match="starts")
    server.answer("", Count(rows), kind="bulk")
    for statement in ("DELETE FROM", "DROP TABLE", "CREATE TABLE", "SELECT * INTO", "SET IDENTITY_INSERT", "SAVE TRAN"):
        server.answer(statement, Count(), kind="batch", match="starts")
    server.answer("MERGE", Count(rows), kind="batch", match="starts")


def column(name: str, kind: Type, *, nullable: bool = True, flags: int = 0) -> Column:
    """Return a column of a table."""
    return Column(name, kind, flags=flags | UPDATABLE | (NULLABLE if nullable else 0))


def statements(server: MSSQL) -> list[str]:
    """Return the batches by which rows were written, without those that every session says."""
    return [one.text for one in server.requests("batch") if "TEXTSIZE" not in one.text and "FMTONLY" not in one.text]
