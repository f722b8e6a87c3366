"""A network of PyTorch in which two parts hold one layer."""

from tests.torch.shared import torch


class Block(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.lin, self.norm = layer, torch.nn.LayerNorm(16)

    def forward(self, x):
        return self.norm(torch.relu(self.lin(x)))


class Shared(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layer = torch.nn.Linear(16, 16)
        self.one, self.two = Block(layer), Block(layer)
        self.three = Block(torch.nn.Linear(16, 16))

    def forward(self, x):
        return self.three(self.two(self.one(x)))
