"""`python -m burnbook` is the command `burnbook`."""

import sys

from burnbook.cli import main

if __name__ == "__main__":
    sys.exit(main())
