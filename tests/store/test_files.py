"""The files of a store and of an export, read by libraries that know nothing of a store."""

from pathlib import Path

import deltalake
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import longshore

ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "name": ["Ada", None, "Böe"],
        "label": pa.array(["x", None, "x"]).dictionary_encode(),
        "seconds": pa.array([0, None, 1], pa.timestamp("s")),
        "list": [[1], None, [None, 2]],
        "struct": [{"a": "x"}, None, {"a": None}],
    }
)


@pytest.mark.packages
def test_the_stores_own_files_are_read_without_it(store: longshore.Store) -> None:
    rows = pa.table({"id": [1, 2, 3], "name": ["Ada", None, "Böe"]})
    store["t"] = rows
    store.write("t", rows, if_exists="append")
    paths = store.files("t")
    assert pa.concat_tables(pa.ipc.open_file(path).read_all() for path in paths).to_pylist() == rows.to_pylist() * 2
    assert (
        pl.concat([pl.read_ipc(path) for path in paths]).rows()
        == [
            (1, "Ada"),
            (2, None),
            (3, "Böe"),
        ]
        * 2
    )


@pytest.mark.packages
def test_exports_are_read_by_all(store: longshore.Store, tmp_path: Path) -> None:
    store["t"] = ROWS
    assert store.export(tmp_path) == {"t": 3}
    assert pq.read_table(tmp_path / "t.parquet").to_pylist() == ROWS.to_pylist()
    assert pd.read_parquet(tmp_path / "t.parquet")["id"].tolist() == [1, 2, 3]
    assert pl.read_parquet(tmp_path / "t.parquet")["name"].to_list() == ["Ada", None, "Böe"]
    assert store.export(tmp_path / "delta", "delta") == {"t": 3}
    found = pa.table(deltalake.DeltaTable(tmp_path / "delta" / "t").to_pyarrow_dataset().to_table())
    assert found.to_pylist() == ROWS.to_pylist()
    for refused, form in ((pa.array([1], pa.duration("us")), "parquet"), (pa.array([1], pa.uint8()), "delta")):
        store["u"] = pa.table({"c": refused})
        with pytest.raises(longshore.NotSupportedError, match="column 'c' of 'u'"):
            store.export(tmp_path / "refused", form)  # type: ignore[arg-type]


def test_files_with_earlier_columns_are_written_again(store: longshore.Store) -> None:
    store["t"] = pa.table({"id": [1], "name": ["Ada"], "old": [0]})
    store.sql("ALTER TABLE t RENAME name TO title")
    with pytest.raises(longshore.NotSupportedError, match="earlier columns"):
        store.files("t")
    store.compact("t")
    (path,) = store.files("t")
    assert pa.ipc.open_file(path).read_all().to_pylist() == [{"id": 1, "title": "Ada", "old": 0}]
    for change in ("DROP old", "ADD new INTEGER"):
        store.sql(f"ALTER TABLE t {change}")
        with pytest.raises(longshore.NotSupportedError, match="earlier columns"):
            store.files("t")
        store.compact("t")
    (path,) = store.files("t")
    assert pa.ipc.open_file(path).read_all().to_pylist() == [{"id": 1, "title": "Ada", "new": None}]
