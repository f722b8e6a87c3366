"""Convolution: in two dims, in any number, and the other way."""
