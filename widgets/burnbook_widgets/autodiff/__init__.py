"""What Autodiff remembered, to walk through."""
