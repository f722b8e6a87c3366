"""Building blocks · Backend. Where tensors live and how operations run."""
