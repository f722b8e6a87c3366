"""Memories that an optimizer alone holds are written over, and only those."""

import copy

import numpy as np
import pytest

from burnbook.core.errors import ShapeError
from burnbook.optim import AdamConfig
from burnbook.optim.state import state_tensors
from burnbook.tensor import Tensor
from tests.support.optimizers_tried import (
    EVERY,
    HALF,
    PLAIN,
    WIDE,
    drawn,
    every,
    moved,
    steps,
    two,
)


def held_arrays(optim):
    """The memories themselves, where they lie."""
    found = [state_tensors(held.state) for held in optim._states.values()]
    return [np.asarray(tensor) for tensors in found for tensor in tensors]


@every
@pytest.mark.parametrize("plain", [PLAIN, WIDE, HALF], ids=["f32", "f64", "f16"])
def test_reused_memories_give_the_same_numbers(name, plain):
    """A rule that may not reuse anything makes exactly the same steps."""
    module, optim, apart = matrices(plain), EVERY[name].init(), EVERY[name].init()
    apart.optim = Alone(apart.optim)
    module, other = (steps(o, module, range(4)) for o in (optim, apart))
    assert not any(moved(module, other).values())
    assert optim.into_record() == apart.into_record()


class Alone:
    """A rule without what it says about reuse."""

    def __init__(self, rule):
        self.rule, self.state_type = rule, rule.state_type

    def step(self, lr, tensor, grad, state):
        return self.rule.step(lr, tensor, grad, state)


def matrices(plain=PLAIN):
    return two(plain, sizes=((40, 600), (40, 600)))


def test_the_memories_of_adam_stay_where_they_are():
    module, optim = matrices(), AdamConfig().init()
    places = []
    for number in range(3):
        module = optim.step(0.01, module, drawn(module, number))
        places.append([array.ctypes.data for array in held_arrays(optim)])
    assert places[0] == places[1] == places[2]


@every
def test_copies_and_loaded_states_are_never_written_over(name):
    optim = EVERY[name].init()
    module = steps(optim, matrices(), range(2))
    copied = copy.deepcopy(optim)
    loaded = EVERY[name].init().load_record(optim.into_record(), PLAIN)
    others = [array.copy() for o in (copied, loaded) for array in held_arrays(o)]
    record = optim.into_record()
    kept = copy.deepcopy(record)
    optim.step(0.01, module, drawn(module, 2))
    now = [array for o in (copied, loaded) for array in held_arrays(o)]
    assert all(np.array_equal(a, b) for a, b in zip(others, now, strict=True))
    assert record == kept
    ends = [steps(o, module, [2]) for o in (copied, loaded)]
    assert not any(moved(*ends).values())


def test_a_step_that_breaks_off_leaves_states_that_go_together():
    """What was written over counts as stepped; the rest is as it was."""
    optim = AdamConfig().init()
    module = steps(optim, matrices(), range(2))

    class Broken:
        is_global = False

        def clip_gradient(self, grad):
            if not seen:
                seen.append(grad)
                return grad
            raise KeyboardInterrupt

    seen: list[Tensor] = []
    optim.with_grad_clipping(Broken())
    with pytest.raises(KeyboardInterrupt):
        optim.step(0.01, module, drawn(module, 2))
    record = optim.into_record()
    times = [
        record[param.id.serialize()]["V1"]["Rank2"]["momentum"]["time"]
        for param in (module.first, module.second)
    ]
    assert times == [3, 2]


def test_all_gradients_are_checked_before_anything_changes():
    optim = AdamConfig().init()
    module = steps(optim, matrices(), range(2))
    before, grads = optim.into_record(), drawn(module, 2)
    grads.register(module.second.id, Tensor.ones([3], PLAIN))
    with pytest.raises(ShapeError, match=r"Two.second: the gradient"):
        optim.step(0.01, module, grads)
    assert optim.into_record() == before
