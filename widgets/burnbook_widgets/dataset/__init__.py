"""The browser of a dataset, and of mistakes in it."""
