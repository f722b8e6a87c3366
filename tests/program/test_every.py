"""Every layer can be captured, and its program gives what the layer gives."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.core.errors import GraphError
from burnbook.core.rng import Stream, use_stream
from burnbook.module import Module
from burnbook.program import capture
from burnbook.program.trees import ARGUMENTS
from burnbook.tensor import Tensor
from tests.nn.test_every import EVERY, More, name_of

DEVICE = Numpy()
BY_LENGTHS = (nn.CTCLossConfig, nn.RNNTLossConfig)  # which Python makes numbers of
ROWS = [row for row in EVERY if not isinstance(row[0], BY_LENGTHS)]
BATCHED = [row for row in ROWS if row[1] is not ROWS[1][1]]  # a vector has no batch


def prepared(row):
    """The layer, its example inputs, and how it is called."""
    subject, *inputs = row
    more = inputs.pop() if isinstance(inputs[-1], More) else More()
    with use_stream(Stream(3)):
        if isinstance(subject, Module):
            module = subject.to_device(DEVICE)
        else:
            try:
                module = subject.init(DEVICE)
            except TypeError:
                module = subject.init()
    rng = np.random.default_rng(0)
    given = []
    for one in inputs:
        if isinstance(one, list):
            one = rng.standard_normal(one).astype(np.float32)
        elif isinstance(one, np.ndarray) and one.dtype.kind == "f":
            one = one.astype(np.float32)
        given.append(
            one(DEVICE) if callable(one) else Tensor.from_numpy(np.array(one), DEVICE)
        )
    return module, given, more.forward


def captured(row, **asked):
    """The program of a layer, the function that it is of, and example inputs."""
    module, given, forward = prepared(row)
    if forward is None:
        return capture(module, *given, **asked), module.forward, given

    def run(*inputs):
        return forward(module, *inputs)

    return capture(run, *given, **asked), run, given


def arrays(found):
    return [np.asarray(tensor) for tensor in ARGUMENTS.collect(found, Tensor, [])]


def agree(program, run, given):
    made, wanted = arrays(program(*given)), arrays(run(*given))
    assert len(made) == len(wanted) > 0
    for one, other in zip(made, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_a_captured_layer_gives_what_the_layer_gives(row):
    agree(*captured(row, batch=None))


@pytest.mark.parametrize("size", [1, 3, 9])
@pytest.mark.parametrize("row", BATCHED, ids=name_of)
def test_it_does_so_for_other_batch_sizes(row, size):
    program, run, given = captured(row)
    count = given[0].dims()[0]
    rows = np.arange(size) % count
    others = [
        Tensor.from_numpy(np.asarray(x)[rows], DEVICE) if x.dims()[0] == count else x
        for x in given
    ]
    if size == 1 and others[0].dims() == (1,) and len(others) == 1:
        pytest.skip("a batch of one number")
    agree(program, run, others)


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_its_parameters_have_the_names_that_they_have_in_the_layer(row):
    module, *_ = prepared(row)
    program, *_ = captured(row, batch=None)
    paths = {path for path, _ in module.named_params()}
    named = {v.name for v in program.constants if v.kind in ("parameter", "buffer")}
    assert set(program.parameters) <= paths
    assert named or not paths


@pytest.mark.parametrize("config", BY_LENGTHS)
def test_a_layer_that_makes_numbers_of_its_inputs_is_refused(config):
    (row,) = [row for row in EVERY if isinstance(row[0], config)]
    with pytest.raises(GraphError, match="asks for elements that depend on the inputs"):
        captured(row)
