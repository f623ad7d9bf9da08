"""`write_sql`, by source and by what it is given."""
