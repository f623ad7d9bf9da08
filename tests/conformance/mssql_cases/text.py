"""Texts, in UTF-16 and in the code page of a collation."""

from tests.conformance.mssql_cases.case import MSSQLCase
from tests.tds.types import MAX, NTEXT, TEXT, char, nchar, nvarchar, varchar

#: By the collation: its five bytes, Python's name of its code page, and text that only this one has.
COLLATIONS: dict[str, tuple[bytes, str, str]] = {
    "SQL_Latin1_General_CP1_CI_AS": (bytes.fromhex("0904D00034"), "cp1252", "Ünïcode € ‰ÿ"),
    "SQL_Latin1_General_CP437_CI_AS": (bytes.fromhex("0904D00020"), "cp437", "éâäàåç ░▒▓ ±≥≤"),
    "SQL_Latin1_General_CP850_CI_AS": (bytes.fromhex("0904D0002A"), "cp850", "éâäàåç ░▒▓ ÐÊ"),
    "Czech_CI_AS": (bytes.fromhex("0504D00000"), "cp1250", "Příliš žluťoučký kůň"),
    "Cyrillic_General_CI_AS": (bytes.fromhex("1904D00000"), "cp1251", "Съешь ещё этих №"),
    "Greek_CI_AS": (bytes.fromhex("0804D00000"), "cp1253", "Ξεσκεπάζω την ψυχή"),
    "Turkish_CI_AS": (bytes.fromhex("1F04D00000"), "cp1254", "İıŞşĞğ"),
    "Hebrew_CI_AS": (bytes.fromhex("0D04D00000"), "cp1255", "שלום"),
    "Arabic_CI_AS": (bytes.fromhex("0104D00000"), "cp1256", "مرحبا"),
    "Lithuanian_CI_AS": (bytes.fromhex("2704D00000"), "cp1257", "ąčęėįšųūž"),
    "Vietnamese_CI_AS": (bytes.fromhex("2A04D00000"), "cp1258", "đơư₫"),
    "Thai_CI_AS": (bytes.fromhex("1E04D00000"), "cp874", "สวัสดี"),
    "Japanese_CI_AS": (bytes.fromhex("1104D00000"), "cp932", "日本語テスト表ソ能"),
    "Chinese_PRC_CI_AS": (bytes.fromhex("0408D00000"), "cp936", "简体中文測試"),
    "Korean_Wansung_CI_AS": (bytes.fromhex("1204D00000"), "cp949", "한국어 똠방각하"),
    "Chinese_Taiwan_Stroke_CI_AS": (bytes.fromhex("0404D00000"), "cp950", "繁體中文許功蓋"),
    "Latin1_General_100_CI_AS_SC_UTF8": (bytes.fromhex("0904D02400"), "utf-8", "é漢😀"),
}
_PLAIN = ("", "a", "it's", "tab\tline\nend", "x" * 50)
_WIDE = ("", "a", "é", "漢字", "😀", "a\u0301", "\ufeff", "\0", "x" * 50)

CASES = (
    MSSQLCase(type=varchar(50), values=_PLAIN),
    MSSQLCase(type=varchar(8000), values=("x" * 8000,)),
    MSSQLCase(type=varchar(MAX), values=(*_PLAIN, "é" * 20_000)),
    MSSQLCase(type=char(5), values=("     ", "a    ", "éclat")),
    MSSQLCase(type=TEXT, values=(*_PLAIN, "é" * 20_000)),
    MSSQLCase(type=nvarchar(50), values=_WIDE),
    MSSQLCase(type=nvarchar(4000), values=("漢" * 4000,)),
    MSSQLCase(type=nvarchar(MAX), values=(*_WIDE, "漢😀" * 10_000)),
    MSSQLCase(type=nchar(5), values=("     ", "a    ", "éclat", "😀😀 ")),
    MSSQLCase(type=NTEXT, values=(*_WIDE, "漢" * 10_000)),
    *(
        MSSQLCase(type=make(size, encoding, collation), values=(sample, sample * 2, "ascii"), note=name)
        for name, (collation, encoding, sample) in COLLATIONS.items()
        for make, size in ((varchar, 200), (varchar, MAX))
    ),
)
