"""A network that PyTorch trained on digits, imported from its file."""
