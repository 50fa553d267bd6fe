"""`python -m styx`: the command line where the `styx` script is not on the path."""

from __future__ import annotations

import sys

from styx.cli import main

if __name__ == "__main__":
    sys.exit(main())
