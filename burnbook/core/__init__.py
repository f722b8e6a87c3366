"""What everything stands on: ops, errors, files, numbers."""
