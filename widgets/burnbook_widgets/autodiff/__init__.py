"""Building blocks · Autodiff. What Autodiff remembered, to walk through."""
