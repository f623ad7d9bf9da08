"""Types, NULLs and names in each frame."""
