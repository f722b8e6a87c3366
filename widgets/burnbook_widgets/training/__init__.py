"""The dashboard of a training, live and when it is over."""
