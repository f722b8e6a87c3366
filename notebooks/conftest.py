"""What `pytest --nbval` needs to see the lines that are committed."""

import os

# A page that is kept holds still pictures, not live boards.
os.environ.setdefault("BURNBOOK_DISPLAY", "static")
