"""Schedules to look at and to turn."""
