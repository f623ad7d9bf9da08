"""The long run, `make test-all`: a network fails at every byte, memory ends at every amount, all cases of tests run."""

import os

IS_LONG = os.environ.get("LONGSHORE_TEST_ALL") == "1"
