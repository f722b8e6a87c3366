"""The guide: a network that learns to read digits.

model.py       the network and its config
data.py        from digits to batches
training.py    the training config and the learner
inference.py   load the trained network and ask it about one digit
__main__.py    all together: python -m burnbook.examples.guide
"""
