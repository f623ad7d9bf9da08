"""The long run, `make test-all`: a network fails at every byte, memory ends at every amount, and tests run in all their cases."""

import os

IS_LONG = os.environ.get("LONGSHORE_TEST_ALL") == "1"
