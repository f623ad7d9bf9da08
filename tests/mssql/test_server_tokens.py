"""The test server's tokens are those of the worked examples in [MS-TDS] 4."""

from tests.tds import tokens
from tests.tds.tokens import Column, Rows, stream
from tests.tds.types import varchar


def _said(*parts: tokens.Part, procedure: bool = False) -> str:
    sent = (step for step in stream(parts, procedure=procedure) if isinstance(step, tuple))
    return b"".join(data * times for data, times in sent).hex(" ").upper()


def test_a_result_is_that_of_the_example() -> None:
    """4.7: SELECT 'foo' AS bar."""
    column = Column("bar", varchar(3), flags=tokens.COMPUTED)
    assert _said(Rows([column], [("foo",)])) == (
        "81 01 00 00 00 00 00 20 00 A7 03 00 09 04 D0 00 34 03 62 00 61 00 72 00 "
        "D1 03 00 66 6F 6F FD 10 00 C1 00 01 00 00 00 00 00 00 00"
    )
