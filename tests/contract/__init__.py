"""The contract of every source: one body for each promise, run for all of them."""
