"""Files that data comes in, read within bounds."""
