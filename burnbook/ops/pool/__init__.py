"""Pooling: in two dims, and in any number."""
