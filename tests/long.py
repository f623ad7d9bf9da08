"""The long run, `make test-all`: a network fails at every byte, and memory ends at every amount."""

import os

IS_LONG = os.environ.get("LONGSHORE_TEST_ALL") == "1"
