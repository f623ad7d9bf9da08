"""Tables of attached databases in ``sql``: what is asked of each database, and what is left to the engine."""
