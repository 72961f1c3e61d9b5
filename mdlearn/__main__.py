"""``python -m mdlearn``."""

import sys

from mdlearn.cli import main

if __name__ == "__main__":
    sys.exit(main())
