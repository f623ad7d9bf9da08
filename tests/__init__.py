"""The tests, and the ground that they stand on."""

import os

# Some hundred processes import NumPy, which would start a thread of linear algebra for each core, and needs none here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
