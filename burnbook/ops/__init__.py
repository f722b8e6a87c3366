"""Building blocks · Tensor. All operations: plain array code, one file per family."""
