"""The embedded store next to DuckDB's file, Parquet, SQLite and PostgreSQL: `python -m benches.store`.

TPC-H at scale factor 1: the export, ingest and queries of MonetDBLite's paper, then changes. Each piece of work has a
process of its own, which has imported and opened all before it is measured; the clients take turns. The medians are
printed, with what was to be reached, and kept in benches/results.

    python -m benches.store --sections exports queries --rounds 5
"""
