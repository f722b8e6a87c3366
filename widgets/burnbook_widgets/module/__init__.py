"""Views of a module: its tree of layers and parameters."""
