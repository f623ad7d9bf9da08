"""ClickBench's 43 queries over a table called hits."""

_JULY = "EventDate >= '2013-07-01' AND EventDate <= '2013-07-31'"
_VISITS = f"CounterID = 62 AND {_JULY}"
_PLAIN = f"{_VISITS} AND DontCountHits = 0 AND IsRefresh = 0"
_REFERER = "REGEXP_REPLACE(Referer, '^https?://(?:www\\.)?([^/]+)/.*$', '\\1')"
_WIDTHS = ", ".join(["SUM(ResolutionWidth)", *(f"SUM(ResolutionWidth + {number})" for number in range(1, 90))])
_CLIENTS = "SUM(IsRefresh), AVG(ResolutionWidth)"
_SOURCE = "CASE WHEN SearchEngineID = 0 AND AdvEngineID = 0 THEN Referer ELSE '' END"

QUERIES = [
    "SELECT COUNT(*) FROM hits",
    "SELECT COUNT(*) FROM hits WHERE AdvEngineID <> 0",
    "SELECT SUM(AdvEngineID), COUNT(*), AVG(ResolutionWidth) FROM hits",
    "SELECT AVG(UserID) FROM hits",
    "SELECT COUNT(DISTINCT UserID) FROM hits",
    "SELECT COUNT(DISTINCT SearchPhrase) FROM hits",
    "SELECT MIN(EventDate), MAX(EventDate) FROM hits",
    "SELECT AdvEngineID, COUNT(*) FROM hits WHERE AdvEngineID <> 0 GROUP BY AdvEngineID ORDER BY COUNT(*) DESC",
    "SELECT RegionID, COUNT(DISTINCT UserID) AS u FROM hits GROUP BY RegionID ORDER BY u DESC LIMIT 10",
    (
        "SELECT RegionID, SUM(AdvEngineID), COUNT(*) AS c, AVG(ResolutionWidth), COUNT(DISTINCT UserID) FROM hits "
        "GROUP BY RegionID ORDER BY c DESC LIMIT 10"
    ),
    (
        "SELECT MobilePhoneModel, COUNT(DISTINCT UserID) AS u FROM hits WHERE MobilePhoneModel <> '' "
        "GROUP BY MobilePhoneModel ORDER BY u DESC LIMIT 10"
    ),
    (
        "SELECT MobilePhone, MobilePhoneModel, COUNT(DISTINCT UserID) AS u FROM hits WHERE MobilePhoneModel <> '' "
        "GROUP BY MobilePhone, MobilePhoneModel ORDER BY u DESC LIMIT 10"
    ),
    (
        "SELECT SearchPhrase, COUNT(*) AS c FROM hits WHERE SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC "
        "LIMIT 10"
    ),
    (
        "SELECT SearchPhrase, COUNT(DISTINCT UserID) AS u FROM hits WHERE SearchPhrase <> '' GROUP BY SearchPhrase "
        "ORDER BY u DESC LIMIT 10"
    ),
    (
        "SELECT SearchEngineID, SearchPhrase, COUNT(*) AS c FROM hits WHERE SearchPhrase <> '' "
        "GROUP BY SearchEngineID, SearchPhrase ORDER BY c DESC LIMIT 10"
    ),
    "SELECT UserID, COUNT(*) FROM hits GROUP BY UserID ORDER BY COUNT(*) DESC LIMIT 10",
    "SELECT UserID, SearchPhrase, COUNT(*) FROM hits GROUP BY UserID, SearchPhrase ORDER BY COUNT(*) DESC LIMIT 10",
    "SELECT UserID, SearchPhrase, COUNT(*) FROM hits GROUP BY UserID, SearchPhrase LIMIT 10",
    (
        "SELECT UserID, extract(minute FROM EventTime) AS m, SearchPhrase, COUNT(*) FROM hits "
        "GROUP BY UserID, m, SearchPhrase ORDER BY COUNT(*) DESC LIMIT 10"
    ),
    "SELECT UserID FROM hits WHERE UserID = 435090932899640449",
    "SELECT COUNT(*) FROM hits WHERE URL LIKE '%google%'",
    (
        "SELECT SearchPhrase, MIN(URL), COUNT(*) AS c FROM hits WHERE URL LIKE '%google%' AND SearchPhrase <> '' "
        "GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10"
    ),
    (
        "SELECT SearchPhrase, MIN(URL), MIN(Title), COUNT(*) AS c, COUNT(DISTINCT UserID) FROM hits "
        "WHERE Title LIKE '%google%' AND URL NOT LIKE '%.google.%' AND SearchPhrase <> '' GROUP BY SearchPhrase "
        "ORDER BY c DESC LIMIT 10"
    ),
    "SELECT * FROM hits WHERE URL LIKE '%google%' ORDER BY EventTime LIMIT 10",
    "SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime LIMIT 10",
    "SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY SearchPhrase LIMIT 10",
    "SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime, SearchPhrase LIMIT 10",
    (
        "SELECT CounterID, AVG(length(URL)) AS l, COUNT(*) AS c FROM hits WHERE URL <> '' GROUP BY CounterID "
        "HAVING COUNT(*) > 100 ORDER BY l DESC LIMIT 25"
    ),
    (
        f"SELECT {_REFERER} AS k, AVG(length(Referer)) AS l, COUNT(*) AS c, MIN(Referer) FROM hits WHERE Referer <> '' "
        "GROUP BY k HAVING COUNT(*) > 100 ORDER BY l DESC LIMIT 25"
    ),
    f"SELECT {_WIDTHS} FROM hits",
    (
        f"SELECT SearchEngineID, ClientIP, COUNT(*) AS c, {_CLIENTS} FROM hits WHERE SearchPhrase <> '' "
        "GROUP BY SearchEngineID, ClientIP ORDER BY c DESC LIMIT 10"
    ),
    (
        f"SELECT WatchID, ClientIP, COUNT(*) AS c, {_CLIENTS} FROM hits WHERE SearchPhrase <> '' "
        "GROUP BY WatchID, ClientIP ORDER BY c DESC LIMIT 10"
    ),
    (
        f"SELECT WatchID, ClientIP, COUNT(*) AS c, {_CLIENTS} FROM hits GROUP BY WatchID, ClientIP ORDER BY c DESC "
        "LIMIT 10"
    ),
    "SELECT URL, COUNT(*) AS c FROM hits GROUP BY URL ORDER BY c DESC LIMIT 10",
    "SELECT 1 AS one, URL, COUNT(*) AS c FROM hits GROUP BY one, URL ORDER BY c DESC LIMIT 10",
    (
        "SELECT ClientIP, ClientIP - 1 AS x, ClientIP - 2 AS y, ClientIP - 3 AS z, COUNT(*) AS c FROM hits "
        "GROUP BY ClientIP, x, y, z ORDER BY c DESC LIMIT 10"
    ),
    f"SELECT URL, COUNT(*) AS v FROM hits WHERE {_PLAIN} AND URL <> '' GROUP BY URL ORDER BY v DESC LIMIT 10",
    f"SELECT Title, COUNT(*) AS v FROM hits WHERE {_PLAIN} AND Title <> '' GROUP BY Title ORDER BY v DESC LIMIT 10",
    (
        f"SELECT URL, COUNT(*) AS v FROM hits WHERE {_VISITS} AND IsRefresh = 0 AND IsLink <> 0 AND IsDownload = 0 "
        "GROUP BY URL ORDER BY v DESC LIMIT 10 OFFSET 1000"
    ),
    (
        f"SELECT TraficSourceID, SearchEngineID, AdvEngineID, {_SOURCE} AS src, URL AS dst, COUNT(*) AS v FROM hits "
        f"WHERE {_VISITS} AND IsRefresh = 0 GROUP BY TraficSourceID, SearchEngineID, AdvEngineID, src, dst "
        "ORDER BY v DESC LIMIT 10 OFFSET 1000"
    ),
    (
        f"SELECT URLHash, EventDate, COUNT(*) AS v FROM hits WHERE {_VISITS} AND IsRefresh = 0 "
        "AND TraficSourceID IN (-1, 6) AND RefererHash = 3594120000172545465 GROUP BY URLHash, EventDate "
        "ORDER BY v DESC LIMIT 10 OFFSET 100"
    ),
    (
        f"SELECT WindowClientWidth, WindowClientHeight, COUNT(*) AS v FROM hits WHERE {_PLAIN} "
        "AND URLHash = 2868770270353813622 GROUP BY WindowClientWidth, WindowClientHeight ORDER BY v DESC "
        "LIMIT 10 OFFSET 10000"
    ),
    (
        "SELECT DATE_TRUNC('minute', EventTime) AS m, COUNT(*) AS v FROM hits WHERE CounterID = 62 "
        "AND EventDate >= '2013-07-14' AND EventDate <= '2013-07-15' AND IsRefresh = 0 AND DontCountHits = 0 "
        "GROUP BY m ORDER BY m LIMIT 10 OFFSET 1000"
    ),
]

#: Counting, five aggregates by group, and a search that is sorted: what others publish figures for.
PUBLISHED = {"count": QUERIES[0], "five aggregates": QUERIES[9], "search and sort": QUERIES[23]}
