"""The fixtures of the tests and of the documentation's examples."""

import os

# Before NumPy is imported, here and in processes that tests start: OpenBLAS's threads spin for as long as that takes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

pytest_plugins = ["tests.fixtures"]
