"""Building blocks · Learning rate scheduler. Schedules to look at and to turn."""
