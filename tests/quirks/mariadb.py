"""MariaDB."""

from tests.quirks import mysql
from tests.quirks.columns import UUID
from tests.quirks.quirks import Kind, Quirks, on_server

QUIRKS = Quirks(
    source="mariadb",
    check_columns=(),
    place=on_server("mariadb"),
    series="WITH series AS (SELECT seq AS i FROM seq_1_to_{rows})",
    streaming="SELECT seq AS i, repeat('x', 100) AS t FROM seq_1_to_1000000000",
    **mysql.SHARED | {"types": mysql.SHARED["types"] | {"uuid": Kind("uuid", UUID)}},
)
