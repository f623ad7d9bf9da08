"""The local engine behind ``sql``: DuckDB executes, and this room owns both of its edges."""
