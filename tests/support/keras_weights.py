"""Layers and rules of Keras with the weights of ours, to compare what they compute."""

import numpy as np

from burnbook.optim import GradientsParams
from burnbook.prelude import Autodiff, Numpy, Tensor

# What a layer is given, [4, 3] where it stands not here; images have channels last.
INPUTS = {
    "Conv2D": (2, 8, 8, 1),
    "MaxPooling2D": (2, 8, 8, 3),
    "AveragePooling2D": (2, 8, 8, 3),
    "GlobalAveragePooling2D": (2, 8, 8, 3),
    "BatchNormalization": (4, 8),
    "LayerNormalization": (4, 8),
    "LSTM": (2, 5, 3),
}
GATES = ("input", "forget", "cell", "output")


def weights_of(ours):
    """The weights of our layer in the order and the layout that Keras has."""
    found = {path: np.array(param.val()) for path, param in ours.named_params()}
    match type(ours).__name__:
        case "Conv2d":
            return [found["weight"].transpose(2, 3, 1, 0), found["bias"]]
        case "BatchNorm":
            averages = ours.running_mean.value(), ours.running_var.value()
            return [found["gamma"], found["beta"], *map(np.array, averages)]
        case "Lstm":
            parts = [
                [f"{gate}_gate.{side}_transform" for gate in GATES]
                for side in ("input", "hidden")
            ]
            inner, outer = (
                np.concatenate([found[f"{name}.weight"] for name in names], 1)
                for names in parts
            )
            bias = [
                found[f"{a}.bias"] + found[f"{b}.bias"]
                for a, b in zip(*parts, strict=True)
            ]
            return [inner, outer, np.concatenate(bias)]
        case _:
            return list(found.values())


def results_of_layers(ours, theirs):
    """What our layer and Keras's give, with the same weights and the same input."""
    name = type(theirs).__name__
    shape = INPUTS.get(name, (4, 3))
    x = np.random.default_rng(1).standard_normal(shape).astype("f4")
    if name == "Embedding":
        x = np.arange(12).reshape(4, 3) % 10
    theirs.build(shape)
    theirs.set_weights(weights_of(ours))
    wanted = np.array(theirs(x, training=False).detach())
    is_image = x.ndim == 4
    given = Tensor.from_numpy(x.transpose(0, 3, 1, 2).copy() if is_image else x)
    found = ours.forward(given, None) if name == "LSTM" else ours.forward(given)
    found = np.asarray(found[0] if isinstance(found, tuple) else found)
    return found.transpose(0, 2, 3, 1) if is_image else found, wanted


def results_of_losses(ours, theirs, values):
    """What our loss and Keras's give; means."""
    from burnbook.nn import Reduction

    x, y, index = (values[name] for name in ("x", "y", "index"))
    if type(theirs).__name__ == "SparseCategoricalCrossentropy":
        return ours.forward(x, index), theirs(np.array(index), np.array(x))
    found = ours.forward(x, y, Reduction.Mean)
    return found, theirs(np.array(y), np.array(x))


def results_of_optimizers(ours, theirs, model):
    """The weights after three steps of both, from the same weights."""
    import keras

    x = np.random.default_rng(2).standard_normal((5, 3)).astype("f4")
    other = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    other.set_weights(weights_of(model.fc1))
    theirs.build(other.trainable_variables)
    device, rate = Autodiff(Numpy()), float(theirs.learning_rate)
    for _ in range(3):
        loss = model.forward(Tensor.from_numpy(x, device)).square().sum()
        grads = GradientsParams.from_grads(loss.backward(), model)
        model = ours.step(rate, model, grads)
        other.zero_grad()
        keras.ops.sum(keras.ops.square(other(x))).backward()
        theirs.apply([v.value.grad for v in other.trainable_variables])
    return np.array(model.fc1.weight.val()), np.array(other.get_weights()[0])
