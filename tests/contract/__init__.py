"""What every source keeps: one body for each promise, run for all of them."""
