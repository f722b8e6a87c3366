"""A whole training as PyTorch's tutorials write it, beside `fits`."""

import tempfile
from pathlib import Path

from tests.bench import theirs
from tests.bench.fit_data import RATE, WORKS


def pytorch(name):
    """The same training, as PyTorch's tutorials write it."""
    torch = theirs._torch()
    make, batch, epochs = WORKS[name]
    x, y, valid_x, valid_y = make()
    data = torch.utils.data
    tensor = torch.from_numpy

    def loader(x, y, shuffle):
        pairs = data.TensorDataset(tensor(x), tensor(y))
        return data.DataLoader(pairs, batch_size=batch, shuffle=shuffle)

    train, valid = loader(x, y, True), loader(valid_x, valid_y, False)
    folder, loss_of = Path(tempfile.mkdtemp()), torch.nn.CrossEntropyLoss()

    def fit():
        model = their_network(torch, name)
        optim = torch.optim.Adam(model.parameters(), lr=RATE)
        for epoch in range(epochs):
            model.train()
            total, correct = 0.0, 0
            for inputs, targets in train:
                optim.zero_grad()
                out = model(inputs)
                loss = loss_of(out, targets)
                loss.backward()
                optim.step()
                total += loss.item()
                correct += (out.argmax(1) == targets).sum().item()
            model.eval()
            with torch.no_grad():
                for inputs, targets in valid:
                    out = model(inputs)
                    total += loss_of(out, targets).item()
                    correct += (out.argmax(1) == targets).sum().item()
            torch.save(
                {"model": model.state_dict(), "optim": optim.state_dict()},
                folder / f"{epoch}.pt",
            )

    return fit


def their_network(torch, name):
    """The network of a workload in PyTorch."""
    nn = torch.nn

    class Mean(nn.Module):
        def forward(self, x):
            return x.mean(1)

    class Last(nn.Module):
        def forward(self, x):
            return x[0][:, -1]

    class Channel(nn.Module):
        def forward(self, x):
            return x[:, None]

    if name == "w1":
        return nn.Sequential(Channel(), theirs.guide(torch, "adaptive"))
    if name == "w2":
        layers = nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()
        return nn.Sequential(nn.Flatten(), *layers, nn.Linear(256, 10))
    if name == "w6":
        return theirs.resnet(torch)
    if name == "w3":
        layer = nn.TransformerEncoderLayer(
            *(256, 8, 1024),
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        body = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        return nn.Sequential(body, Mean(), nn.Linear(256, 10))
    body = nn.LSTM(64, 128, batch_first=True)
    return nn.Sequential(body, Last(), nn.Linear(128, 10))
