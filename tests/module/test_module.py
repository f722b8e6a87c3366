"""Modules: fields, parameters, visitors and mappers, devices, the path in errors."""

import copy
import pickle
import threading
import tracemalloc

import numpy as np
import pytest

from burnbook.backend import Autodiff, Counting, Numpy
from burnbook.core.dtypes import Bool, Float, Int
from burnbook.core.errors import BackendError, BurnbookError, RecordError, ShapeError
from burnbook.module import (
    Lora,
    Module,
    ModuleMapper,
    ModuleVisitor,
    Param,
    ParamId,
    list_param_ids,
)
from burnbook.nn import (
    BatchNorm,
    BatchNormConfig,
    Initializer,
    Linear,
    LinearConfig,
    Relu,
)
from burnbook.optim import ParamGroup
from burnbook.tensor import Tensor
from tests.support.modules import (
    AD,
    PLAIN,
    Block,
    Gate,
    block,
    guide,
    mixed,
    net,
    same_values,
    values,
)
from tests.support.refusals import refused

# Fields


def test_a_module_needs_its_fields_and_keeps_defaults():
    with pytest.raises(TypeError, match="conv"):
        Block()
    assert block(dws=False).norm is None


def test_a_parameter_that_is_no_field_is_refused():
    class Net(Module):
        def __init__(self):
            self.extra = Param.from_tensor(Tensor.ones([1], PLAIN))

    cure = "\n  try: a line `extra: Param` in the class"
    refused(AttributeError, Net, "Net.extra: ", cure)


def test_modules_are_told_apart_by_identity():
    a, b = Relu(), Relu()
    assert a != b
    assert len({a, b, a}) == 2


def test_call_is_forward():
    x = Tensor.from_data([[-1.0, 2.0]], PLAIN)
    assert np.array_equal(Relu()(x), [[0.0, 2.0]])


# Parameters


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0000000000000"),
        (1, "0400000000000"),
        (123456, "83h0200000000"),
        (7307477237661669944, "72d17eukbtkma"),
        (2**64 - 1, "vvvvvvvvvvvvu"),
    ],
)
def test_param_ids_read_and_write_as_in_burn(number, text):
    assert ParamId(number).serialize() == text == str(ParamId(number)) == f"{text}"
    assert ParamId.deserialize(text) == ParamId.deserialize(text.upper()) == number


def test_older_ids_are_read():
    assert ParamId.deserialize("04") == 1
    old = "7cbd1bd0-4d69-4ba2-a7d9-2c3c1c7e6b1d"
    assert ParamId.deserialize(old) == ParamId.deserialize(old)
    assert 0 <= ParamId.deserialize(old) < 2**64
    with pytest.raises(RecordError, match="'not an id!' is not the id"):
        ParamId.deserialize("not an id!")


def test_new_ids_differ_and_do_not_follow_the_seed():
    PLAIN.seed(1)
    first = ParamId.new()
    PLAIN.seed(1)
    assert first != ParamId.new()


def test_init_draws_nothing_and_allocates_little():
    device = Counting(Numpy())
    guide(device)
    device.counts.clear()
    tracemalloc.start()
    model = guide(device)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert not device.counts
    assert size < 64 * 1024
    model.linear1.weight.val()
    assert device.counts["uniform"] == 1


def test_the_order_of_first_use_changes_nothing():
    PLAIN.seed(3)
    first = guide(PLAIN)
    forward = values(first)
    PLAIN.seed(3)
    second = guide(PLAIN)
    backward = [np.array(p.val()) for _, p in reversed(second.named_params())][::-1]
    for x, y in zip(forward, backward, strict=True):
        assert np.array_equal(x, y)


def test_two_threads_that_meet_a_lazy_parameter_agree():
    for _ in range(5):
        model, seen = guide(AD), []
        barrier = threading.Barrier(4)

        def look(model=model, seen=seen, barrier=barrier):
            barrier.wait()
            seen.append([param.val() for _, param in model.named_params()])

        threads = [threading.Thread(target=look) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        for found in zip(*seen, strict=True):
            assert len({id(value) for value in found}) == 1


def test_a_loaded_record_spares_the_drawing():
    device = Counting(Numpy())
    record = guide(PLAIN).into_record()
    guide(device).load_record(record)
    assert device.counts["uniform"] == 0


def test_from_tensor_requires_a_gradient_and_initialized_does_not_change_it():
    tensor = Tensor.ones([2], AD)
    param = Param.from_tensor(tensor)
    assert param.is_require_grad
    assert param.val().is_require_grad()
    assert not Param.initialized(ParamId(1), tensor).is_require_grad
    ints = Param.from_data([1, 2], AD, Int)
    assert (ints.kind, ints.is_require_grad) == (Int, False)


@pytest.mark.parametrize(
    "name", ["is_require_grad", "is_trainable", "is_initialized", "is_shaped"]
)
@pytest.mark.parametrize("attach", [False, True])
def test_a_parameter_is_asked_with_and_without_parentheses(name, attach):
    layer = LinearConfig(2, 3).init(AD)
    layer = layer.apply_lora(Lora(1, 1.0)) if attach else layer
    frozen = layer.freeze_group(ParamGroup.all())
    for param in (layer.weight, frozen.weight, layer.bias):
        said = getattr(param, name)
        assert said() is bool(said)
        assert repr(said) == str(said) == repr(bool(said))
    assert frozen.weight.is_require_grad() is False
    assert pickle.loads(pickle.dumps(frozen.bias)).is_require_grad() is False


def test_set_require_grad_stays_lazy_and_keeps_id_and_values():
    param = LinearConfig(2, 2).init(AD).weight
    frozen = param.set_require_grad(False)
    assert not frozen.is_initialized
    assert frozen.id == param.id
    assert not frozen.val().is_require_grad()
    assert frozen.set_require_grad(True).val().is_require_grad()
    assert np.array_equal(frozen.val(), param.val())


def test_a_param_prints_its_id_and_its_repr_is_stable():
    param = LinearConfig(2, 3).init(PLAIN).weight
    assert str(param) == f"Param: {param.id}"
    assert repr(param) == "Param Float [2, 3] on Numpy(), lazy"
    param.val()
    assert repr(param) == "Param Float [2, 3] on Numpy()"


# Visitors and mappers


class Kinds(Module):
    weight: Param
    index: Param
    mask: Param


def kinds(device=PLAIN) -> Kinds:
    return Kinds(
        Param.from_tensor(Tensor.ones([2], device)),
        Param.from_tensor(Tensor.from_ints([1, 2, 3], device)),
        Param.from_tensor(Tensor.from_bool([True], device)),
    )


def test_a_visitor_sees_every_parameter_by_kind():
    seen = []

    class Look(ModuleVisitor):
        def visit_float(self, key, tensor):
            seen.append(("float", key, tensor.dims()))

        def visit_int(self, key, tensor):
            seen.append(("int", key, tensor.dims()))

    module = kinds()
    module.visit(Look())
    ids = list_param_ids(module)
    assert seen == [("float", ids[0], (2,)), ("int", ids[1], (3,))]


def test_the_books_names_stand_for_all_kinds():
    class Look:
        def __init__(self):
            self.dims = []

        def visit(self, key, tensor):
            self.dims.append(tensor.dims())

    class Same(ModuleMapper):
        def map(self, key, tensor):
            return tensor

    look = Look()
    kinds().map(Same()).visit(look)
    assert look.dims == [(2,), (3,), (1,)]


def test_a_visitor_without_a_method_is_refused():
    with pytest.raises(TypeError, match="has none of visit_float"):
        kinds().visit(object())


def test_a_mapper_makes_a_new_module_with_the_same_ids():
    class Double(ModuleMapper):
        def map_float(self, key, tensor):
            return tensor * 2.0

    module = net(AD)
    before = values(module)
    doubled = module.map(Double())
    for old, kept, new in zip(before, values(module), values(doubled), strict=True):
        assert np.array_equal(old, kept)
        assert np.array_equal(new, old * 2)
    assert list_param_ids(doubled) == list_param_ids(module)


def test_parameters_are_visited_in_the_order_of_the_fields():
    names = [name for name, _ in net().named_params()]
    assert names == [
        "gate.input_transform.weight",
        "gate.input_transform.bias",
        "gate.hidden_transform.weight",
        "gate.hidden_transform.bias",
        "layers.0.weight",
        "layers.1.weight",
    ]


def test_tied_weights_stay_tied():
    linear = LinearConfig(2, 2).with_bias(False).init(AD)
    tied = Gate(linear, Linear(linear.weight, None))

    class Double(ModuleMapper):
        def map_float(self, key, tensor):
            return tensor * 2.0

    record = tied.into_record()
    for made in (tied.map(Double()), tied.valid(), tied.load_record(record)):
        assert made.input_transform.weight is made.hidden_transform.weight


def test_num_params_counts_float_elements_only():
    assert kinds().num_params() == 2


def test_what_is_tied_counts_once():
    linear = LinearConfig(2, 2).with_bias(False).init(AD)
    assert Gate(linear, Linear(linear.weight, None)).num_params() == 4
    assert copy.deepcopy(Gate(linear, linear)).num_params() == 4


def test_trainable_params_are_without_statistics_and_frozen_ones():
    class Two(Module):
        linear: Linear
        norm: BatchNorm

    model = Two(LinearConfig(2, 3).init(AD), BatchNormConfig(3).init(AD))
    assert (model.num_params(), model.num_trainable_params()) == (21, 15)
    assert model.valid().num_trainable_params() == 15
    frozen = model.replace(linear=model.linear.no_grad())
    assert frozen.num_trainable_params() == 6


# Devices


def test_valid_is_the_same_module_without_gradients():
    model = guide(AD)
    valid = model.valid()
    assert valid.devices() == [PLAIN]
    assert list_param_ids(valid) == list_param_ids(model)
    assert same_values(valid, model)
    assert not valid.conv1.weight.is_require_grad
    x = Tensor.ones([2, 28, 28], PLAIN)
    assert np.array_equal(valid.forward(x), valid.forward(x))


def test_train_goes_back_under_autodiff():
    trained = guide(AD).valid().train()
    assert trained.devices() == [AD]
    assert all(param.val().is_require_grad() for _, param in trained.named_params())


def test_no_grad_freezes_every_parameter():
    model = net(AD).no_grad()
    assert not any(param.val().is_require_grad() for _, param in model.named_params())
    x = Tensor.ones([1, 2], AD).require_grad()
    loss = model.gate.input_transform.forward(x).sum()
    grads = loss.backward()
    assert model.gate.input_transform.weight.val().grad(grads) is None
    assert x.grad(grads) is not None


def test_fork_and_to_device_move_the_module():
    wide = Autodiff(Numpy(float="f64"))
    model = mixed(AD)
    linear = LinearConfig(2, 2).init(AD)
    for moved in (linear.fork(wide), linear.to_device(wide)):
        assert moved.devices() == [wide]
        assert moved.weight.val().is_require_grad()
        assert moved.weight.id == linear.weight.id
        assert np.allclose(moved.weight.val(), linear.weight.val())
    assert model.fork(wide).constant.device() is wide
    assert linear.to_device(AD).weight.val() is linear.weight.val()


def test_fork_gives_leaves_of_their_own():
    linear = LinearConfig(2, 2).init(AD)
    forked = linear.fork(AD)
    loss = forked.forward(Tensor.ones([1, 2], AD)).sum()
    grads = loss.backward()
    assert linear.weight.val().grad(grads) is None
    assert forked.weight.val().grad(grads) is not None


def test_devices_counts_constants_and_every_device_once():
    module = mixed(PLAIN)
    assert module.devices() == [PLAIN]
    module = module.replace(constant=Tensor.zeros([3], AD))
    assert module.devices() == [PLAIN, AD]
    assert module.collect_devices([AD]) == [AD, PLAIN]


def test_copies_share_nothing_that_matters():
    model = net(AD)
    for made in (
        model.clone(),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
    ):
        assert same_values(made, model)
        assert list_param_ids(made) == list_param_ids(model)
        assert made.gate is not model.gate
        assert made.gate.input_transform.weight.is_require_grad


# Errors


def test_an_error_says_in_which_module_it_happened():
    class Outer(Module):
        models: list[Module]

        def forward(self, images):
            return self.models[0].forward(images)

    outer = Outer([guide(PLAIN)])
    images = Tensor.ones([2, 28, 28], AD)
    path = "Outer.models.0.conv1: conv2d: "
    refused(BackendError, lambda: outer.forward(images), path)
    x, weight = Tensor.ones([1, 3], PLAIN), Tensor.ones([2, 2], PLAIN)
    refused(ShapeError, lambda: x.linear(weight), "linear: 3 ≠ 2")


def test_an_error_outside_of_any_module_has_no_path():
    x = Tensor.ones([2, 3], PLAIN)
    refused(ShapeError, lambda: x.matmul(x), "matmul: ")


def test_kinds_of_parameters_are_kept():
    module = kinds(AD)
    found = [
        param.kind
        for _, param in module.load_record(module.into_record()).named_params()
    ]
    assert found == [Float, Int, Bool]
    assert [p.kind for _, p in module.valid().named_params()] == found


def test_a_lazy_parameter_of_an_impossible_initializer_fails_at_its_first_use():
    rule = Initializer.KaimingUniform(gain=1.0, fan_out_only=False)
    param = rule.init([2, 2], PLAIN)
    with pytest.raises(BurnbookError, match="does not say how many inputs"):
        param.val()
