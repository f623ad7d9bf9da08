"""The fixtures of the tests and of the documentation's examples."""

import os

# Before NumPy is imported, here and in the processes of tests: a thread of OpenBLAS spins for as long as the import takes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

pytest_plugins = ["tests.fixtures"]
