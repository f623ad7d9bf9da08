"""``python -m longshore``: the same as the command ``longshore``."""

import sys

from longshore.shell import main

if __name__ == "__main__":
    sys.exit(main())
