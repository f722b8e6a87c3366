# %% [markdown] tags=["goals"]
# # Text generation
#
# Two networks learn to write, one character at a time: an LSTM, which keeps what it has
# read in a state, and a transformer, which looks back at the text itself. The text is
# one that every Python has: `import this`. It is short, so both soon memorize much of
# it, and it is easy to see what they know.
#
# About 10 minutes. You should have read [4.4](../04_04_module.ipynb).

# %% tags=["setup"]
import codecs
import contextlib
import io

import numpy as np

import burnbook
from burnbook import nn
from burnbook.backend import Autodiff
from burnbook.backend import Numpy
from burnbook.module import Module
from burnbook.nn.attention import generate_autoregressive_mask
from burnbook.nn.transformer import TransformerEncoderInput
from burnbook.optim import AdamConfig, GradientsParams
from burnbook.tensor import Int, Tensor

with contextlib.redirect_stdout(io.StringIO()):  # it prints itself
    import this

burnbook.seed(0)
device = Autodiff(Numpy())

# %% [markdown]
# ## The text, as numbers

# %% tags=["run-me"]
text = codecs.decode(this.s, "rot13")
characters = sorted(set(text))
codes = np.array([characters.index(c) for c in text])
print(len(text), "characters,", len(characters), "different ones")
print(text[:66])

# %% [markdown]
# ## An LSTM that writes
#
# Each character becomes a vector, the LSTM reads the vectors, and a linear layer gives a
# score for each character to come next. The state is passed from one call to the next.


# %% tags=["run-me"]
class LstmWriter(Module):
    embedding: nn.Embedding
    lstm: nn.Lstm
    head: nn.Linear

    def forward(self, x, state=None):
        x, state = self.lstm.forward(self.embedding.forward(x), state)
        return self.head.forward(x), state

    @classmethod
    def new(cls, device, d=96):
        return cls(
            embedding=nn.EmbeddingConfig(len(characters), d).init(device),
            lstm=nn.LstmConfig(d, d, bias=True).init(device),
            head=nn.LinearConfig(d, len(characters)).init(device),
        )

    def write(self, start, length):
        state, read = None, list(start)
        for _ in range(length):
            x = Tensor[2, Int].from_ints([read], device.inner)
            scores, state = self.forward(x, state)
            read = [int(np.asarray(scores)[0, -1].argmax())]
            start = [*start, *read]
        return "".join(characters[i] for i in start)


# %% [markdown]
# ## Train
#
# A step takes 8 pieces from anywhere in the text, and predicts every character from
# those before it.


# %% tags=["run-me"]
def train(model, steps, rate, length, batch=8):
    optim = AdamConfig().init()
    loss_of = nn.CrossEntropyLossConfig().init(device)
    draw = np.random.default_rng(0)
    for step in range(steps):
        starts = draw.integers(0, len(codes) - length, batch)
        pieces = np.stack([codes[i : i + length + 1] for i in starts])
        x = Tensor.from_numpy(pieces[:, :-1], device)
        targets = Tensor.from_numpy(pieces[:, 1:].reshape(-1), device)
        scores, _ = model.forward(x)
        loss = loss_of.forward(scores.reshape([-1, len(characters)]), targets)
        grads = GradientsParams.from_grads(loss.backward(), model)
        model = optim.step(rate * (1 - step / steps), model, grads)
    print(
        "loss < 0.5 ✔" if loss.into_scalar() < 0.5 else "not yet", end="\n\n"
    )
    return model


def known(written):
    """The share of words that occur in the text."""
    words = written[64:].split()[1:-1]  # the first and the last may be cut
    return sum(word in text.split() for word in words) / len(words)


# %% tags=["run-me"]
start = [int(i) for i in codes[:64]]
lstm = LstmWriter.new(device)
lstm = train(lstm, steps=250, rate=8e-3, length=48).valid()
written = lstm.write(start, 200)
print("LSTM: most words are real", "✔" if known(written) > 0.8 else "✘")

# %% [markdown]
# It always takes the most likely character, so it can get into a loop. More training
# steps make the loop longer; so does a larger state.

# %% tags=["run-me", "nbval-ignore-output"]
print(written)

# %% [markdown]
# ## A transformer that writes
#
# It has no state: at each position it looks back at all earlier characters, and a mask
# hides the later ones. The position of a character is encoded and added to its vector.


# %% tags=["run-me"]
class TransformerWriter(Module):
    embedding: nn.Embedding
    position: nn.PositionalEncoding
    encoder: nn.TransformerEncoder
    head: nn.Linear

    def forward(self, x):
        batch, length = x.dims()
        x = self.position.forward(self.embedding.forward(x))
        mask = generate_autoregressive_mask(batch, length, x.device())
        read = TransformerEncoderInput.new(x).mask_attn(mask)
        return self.head.forward(self.encoder.forward(read)), None

    @classmethod
    def new(cls, device, d=48):
        encoder = nn.TransformerEncoderConfig(d, 4 * d, n_heads=4, n_layers=2)
        encoder = encoder.with_dropout(0.0).with_norm_first(True)
        return cls(
            embedding=nn.EmbeddingConfig(len(characters), d).init(device),
            position=nn.PositionalEncodingConfig(d).init(device),
            encoder=encoder.init(device),
            head=nn.LinearConfig(d, len(characters)).init(device),
        )

    def write(self, start, length, window=48):
        for _ in range(length):
            x = Tensor[2, Int].from_ints([start[-window:]], device.inner)
            scores, _ = self.forward(x)
            start = [*start, int(np.asarray(scores)[0, -1].argmax())]
        return "".join(characters[i] for i in start)


# %% tags=["run-me"]
transformer = TransformerWriter.new(device)
transformer = train(transformer, steps=400, rate=8e-3, length=48).valid()
written = transformer.write(start, 200)
real = known(written) > 0.8
print("transformer: most words are real", "✔" if real else "✘")

# %% [markdown]
# And how do they continue a beginning that is not in the text?

# %% tags=["run-me", "nbval-ignore-output"]
ask = [characters.index(c) for c in "Python is better than "]
print(written, lstm.write(ask, 60), transformer.write(ask, 60), sep="\n\n")

# %% [markdown] tags=["summary"]
# ## Summary
#
# - A network that writes is one that predicts the next character.
# - The LSTM keeps a state; the transformer reads the last 48 characters again.
# - The mask hides the future; `PositionalEncoding` adds the position of a character.
#
# Next: [Example · A residual network](residual_network.ipynb)
