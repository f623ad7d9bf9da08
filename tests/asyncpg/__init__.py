"""The drop-in for asyncpg."""
