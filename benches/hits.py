"""A table in the shape of ClickBench's hits, 105 columns of made-up rows, the same everywhere; kept in the cache."""

from pathlib import Path

import duckdb

from benches.lineitem import say
from tests.servers import cache

#: Columns that hold little more than a flag or a small number, with how many values they have.
SMALL = {
    "JavaEnable": 2, "GoodEvent": 1, "CounterClass": 2, "OS": 80, "UserAgent": 60, "IsRefresh": 2,
    "RefererCategoryID": 900, "URLCategoryID": 900, "ResolutionHeight": 1200, "ResolutionDepth": 33, "FlashMajor": 14,
    "FlashMinor": 8, "NetMajor": 5, "NetMinor": 9, "UserAgentMajor": 40, "CookieEnable": 2, "JavascriptEnable": 2,
    "IsMobile": 2, "MobilePhone": 70, "TraficSourceID": 12, "SearchEngineID": 90, "IsArtifical": 2,
    "WindowClientWidth": 2000, "WindowClientHeight": 1500, "ClientTimeZone": 700, "SilverlightVersion1": 6,
    "SilverlightVersion2": 3, "SilverlightVersion4": 3, "IsLink": 2, "IsDownload": 2, "IsNotBounce": 2,
    "IsOldCounter": 2, "IsEvent": 2, "IsParameter": 2, "DontCountHits": 2, "WithHash": 2, "Age": 60, "Sex": 3,
    "Income": 6, "Interests": 32000, "Robotness": 100, "HistoryLength": 50, "HTTPError": 2,
    "SocialSourceNetworkID": 8, "ParamCurrencyID": 4, "HasGCLID": 2,
}  # fmt: skip
#: Columns of numbers up to a million.
NUMBERS = [
    "ClientIP", "RefererRegionID", "URLRegionID", "IPNetworkID", "SilverlightVersion3", "CodeVersion", "HID",
    "RemoteIP", "WindowName", "OpenerName", "SendTiming", "DNSTiming", "ConnectTiming", "ResponseStartTiming",
    "ResponseEndTiming", "FetchTiming", "CLID",
]  # fmt: skip
#: Texts that are empty in most rows.
RARE = [
    "FlashMinor2", "UserAgentMinor", "Params", "PageCharset", "OriginalURL", "HitColor", "BrowserLanguage",
    "BrowserCountry", "SocialNetwork", "SocialAction", "SocialSourcePage", "ParamOrderID", "ParamCurrency",
    "OpenstatServiceName", "OpenstatCampaignID", "OpenstatAdID", "OpenstatSourceID", "UTMSource", "UTMMedium",
    "UTMCampaign", "UTMContent", "UTMTerm", "FromTag",
]  # fmt: skip
HOSTS = ["berth.example", "harbour.example", "quay.example", "tide.example", "google.com", "buoy.example"]
WORDS = ["crane", "tug", "rope", "anchor", "mooring", "pilot", "ballast", "cargo", "winch", "hull", "keel", "lock"]


def hits(rows: int) -> Path:
    """Return the Parquet file of this many rows; where it is not there yet, make it."""
    file = cache() / f"hits-{rows}.parquet"
    if not file.exists():
        say(f"making {rows:,} rows of hits")
        unfinished = file.with_suffix(".part")
        with duckdb.connect() as connection:
            connection.execute("SET enable_progress_bar = false")
            connection.execute(f"COPY ({_rows(rows)}) TO '{unfinished}' (FORMAT parquet, ROW_GROUP_SIZE 122880)")
        unfinished.rename(file)
    return file


def _rows(rows: int) -> str:
    rare = f"CASE WHEN {_below(2, 50)} = 0 THEN 'google' ELSE {_word(3)} END"
    columns = {
        "WatchID": "(hash(n, 0) >> 1)::BIGINT",
        "Title": f"{_word(1)} || ' ' || {rare} || ' ' || {_below(4, 5000)}",
        "EventTime": f"TIMESTAMP '2013-07-01' + to_seconds({_below(5, 31 * 86_400)})",
        "EventDate": f"DATE '2013-07-01' + {_below(5, 31 * 86_400)}::INTEGER // 86400",
        "CounterID": f"CASE WHEN {_below(6, 20)} = 0 THEN 62 ELSE {_below(7, 6000)} END::INTEGER",
        "RegionID": f"{_skewed(8, 9000)}::INTEGER",
        "UserID": f"CASE WHEN {_below(9, 1000)} = 0 THEN 435090932899640449 ELSE {_skewed(9, 1_000_000)} END::BIGINT",
        "URL": _address(10),
        "Referer": f"CASE WHEN {_below(11, 3)} = 0 THEN '' ELSE {_address(12)} END",
        "ResolutionWidth": f"(800 + {_below(13, 1200)})::SMALLINT",
        "MobilePhoneModel": f"CASE WHEN {_below(14, 20)} = 0 THEN {_word(15)} ELSE '' END",
        "SearchPhrase": f"CASE WHEN {_below(16, 8)} = 0 THEN {_word(17)} || ' ' || {_skewed(18, 100_000)} ELSE '' END",
        "AdvEngineID": f"CASE WHEN {_below(19, 50)} = 0 THEN {_below(20, 30)} ELSE 0 END::SMALLINT",
        "ClientEventTime": f"TIMESTAMP '2013-07-01' + to_seconds({_below(21, 31 * 86_400)})",
        "FUniqID": "(hash(n, 22) >> 1)::BIGINT",
        "LocalEventTime": f"TIMESTAMP '2013-07-01' + to_seconds({_below(23, 31 * 86_400)})",
        "ParamPrice": f"{_below(24, 1000)}::BIGINT",
        "RefererHash": f"CASE WHEN {_below(25, 500)} = 0 THEN 3594120000172545465 ELSE (hash(n, 25) >> 1)::BIGINT END",
        "URLHash": f"CASE WHEN {_below(26, 500)} = 0 THEN 2868770270353813622 ELSE (hash(n, 26) >> 1)::BIGINT END",
    }
    salt = 100
    for name, values in SMALL.items():
        columns[name] = f"{_below(salt := salt + 1, values)}::SMALLINT"
    for name in NUMBERS:
        columns[name] = f"{_skewed(salt := salt + 1, 1_000_000)}::INTEGER"
    for name in RARE:
        columns[name] = f"CASE WHEN {_below(salt := salt + 1, 20)} = 0 THEN {_word(salt)} ELSE '' END"
    listed = ", ".join(f'{expression} AS "{name}"' for name, expression in columns.items())
    return f"SELECT {listed} FROM range({rows}) AS t(n)"


def _below(salt: int, values: int) -> str:
    return f"(hash(n, {salt}) % {values})::BIGINT"


def _skewed(salt: int, values: int) -> str:
    """Give low numbers far more often than high ones, as visitors and places are."""
    return f"({_below(salt, values)} * {_below(salt + 1000, values)} // {values})"


def _word(salt: int) -> str:
    return f"{WORDS!r}[{_below(salt, len(WORDS))} + 1]"


def _address(salt: int) -> str:
    host = f"{HOSTS!r}[{_skewed(salt, len(HOSTS))} + 1]"
    return f"'http://' || {host} || '/' || {_word(salt + 50)} || '/' || {_skewed(salt, 500_000)}"
