"""The Flight SQL server: what others' clients do with it, and what no one can."""
