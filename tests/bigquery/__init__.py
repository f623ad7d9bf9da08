"""BigQuery, of which no server can run here: a fake of its clients, and the real ones against an HTTP stand-in."""
