"""The tests, and the ground that they stand on."""
