"""Print the counts, and every case that disagrees."""

import sys

from tests.oracle.burn.report import main

if __name__ == "__main__":
    main(sys.argv[1:])
