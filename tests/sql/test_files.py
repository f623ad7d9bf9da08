"""Files in a query, and a query's result in a file."""

import gzip
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest

import longshore
from tests.sql.rows import rows

pytestmark = pytest.mark.packages

TABLE = pa.table({"id": [1, 2, 3], "name": ["Ada", None, "Zoë"]})
ROWS = TABLE.to_pylist()


def test_parquet_and_a_variable_join(tmp_path: Path) -> None:
    pa.parquet.write_table(TABLE, tmp_path / "a.parquet")
    pa.parquet.write_table(TABLE.slice(0, 1), tmp_path / "b.parquet")
    prices = pd.DataFrame({"id": [1, 3], "price": [1.5, 2.5]})
    query = f"SELECT id, name, price FROM prices JOIN '{tmp_path}/*.parquet' USING (id) ORDER BY ALL"
    assert rows(query, prices=prices) == [
        {"id": 1, "name": "Ada", "price": 1.5},
        {"id": 1, "name": "Ada", "price": 1.5},
        {"id": 3, "name": "Zoë", "price": 2.5},
    ]


def test_csv_plain_and_compressed(tmp_path: Path) -> None:
    text = "id,name\n1,Ada\n2,\n3,Zoë\n"
    (tmp_path / "plain.csv").write_text(text)
    (tmp_path / "small.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "small.csv.zst").write_bytes(pa.compress(text.encode(), "zstd", asbytes=True))
    for name in ("plain.csv", "small.csv.gz", "small.csv.zst"):
        assert rows(f"SELECT * FROM '{tmp_path / name}'") == ROWS


def test_json_lines_and_arrays(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps(row) for row in ROWS)
    (tmp_path / "a.ndjson").write_text(lines)
    (tmp_path / "b.json").write_text(json.dumps(ROWS))
    (tmp_path / "c.ndjson.gz").write_bytes(gzip.compress(lines.encode()))
    for name in ("a.ndjson", "b.json", "c.ndjson.gz"):
        assert rows(f"SELECT * FROM '{tmp_path / name}'") == ROWS


def test_hive_directories_are_columns(tmp_path: Path) -> None:
    copied = rows(
        f"COPY (SELECT *, id % 2 AS odd FROM t) TO '{tmp_path}/p' (FORMAT parquet, PARTITION_BY (odd))", t=TABLE
    )
    assert copied == [{"Count": 3}]
    query = f"SELECT id, odd FROM read_parquet('{tmp_path}/p/**/*.parquet', hive_partitioning = true) ORDER BY id"
    assert rows(query) == [{"id": 1, "odd": 1}, {"id": 2, "odd": 0}, {"id": 3, "odd": 1}]


@pytest.mark.parametrize("suffix", ["arrow", "feather", "ipc"])
def test_arrow_files_alone_and_by_a_glob(tmp_path: Path, suffix: str) -> None:
    pa.feather.write_feather(TABLE, tmp_path / f"a.{suffix}", compression="zstd")
    pa.feather.write_feather(TABLE.slice(2), tmp_path / f"b.{suffix}", compression="uncompressed")
    assert rows(f"SELECT * FROM '{tmp_path}/a.{suffix}'") == ROWS
    assert rows(f"SELECT name FROM '{tmp_path}/*.{suffix}' WHERE id > 2") == [{"name": "Zoë"}] * 2


def test_an_arrow_stream_in_a_file(tmp_path: Path) -> None:
    with pa.OSFile(str(tmp_path / "a.arrows"), "wb") as file, pa.ipc.new_stream(file, TABLE.schema) as stream:
        stream.write_table(TABLE)
    assert rows(f"SELECT * FROM '{tmp_path}/a.arrows'") == ROWS


def test_hive_directories_of_arrow_files(tmp_path: Path) -> None:
    parts = pa.dataset.partitioning(pa.schema([("id", pa.int64())]), flavor="hive")
    pa.dataset.write_dataset(TABLE, tmp_path / "p", format="ipc", partitioning=parts)
    found = rows(f"SELECT id, name FROM '{tmp_path}/p/**/*.arrow' WHERE id = 3")
    assert found == [{"id": 3, "name": "Zoë"}]


def test_a_file_that_is_none(tmp_path: Path) -> None:
    for suffix in ("parquet", "csv", "arrow"):
        with pytest.raises(longshore.OperationalError, match=f"no.{suffix}"):
            rows(f"SELECT * FROM '{tmp_path}/no.{suffix}'")
    for content in (b"ARROW1 but not really", b"nothing of the kind", b""):
        (tmp_path / "broken.arrow").write_bytes(content)
        with pytest.raises(longshore.OperationalError, match=r"broken\.arrow"):
            rows(f"SELECT * FROM '{tmp_path}/broken.arrow'")


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_copy_to_a_file_and_back(tmp_path: Path, form: str) -> None:
    boats = TABLE
    path = tmp_path / f"out.{form}"
    counted = longshore.sql(f"COPY (SELECT * FROM boats WHERE id > 1) TO '{path}'", return_type="arrow")
    assert counted.to_pylist() == [{"Count": 2}]
    assert boats.num_rows == 3
    assert rows(f"SELECT * FROM '{path}'") == ROWS[1:]


def test_a_whole_variable_is_copied(tmp_path: Path) -> None:
    boats = pd.DataFrame({"id": [1, 2], "cargo": [{"kind": "coal"}, {"tons": 5}]})
    rows(f"COPY boats TO '{tmp_path}/boats.parquet' (COMPRESSION zstd)", boats=boats)
    found = pa.parquet.read_table(tmp_path / "boats.parquet").to_pylist()
    assert found == [
        {"id": 1, "cargo": {"kind": "coal", "tons": None}},
        {"id": 2, "cargo": {"kind": None, "tons": 5}},
    ]
