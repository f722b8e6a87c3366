"""A playground: points on a plane, and a network that learns to separate them."""
