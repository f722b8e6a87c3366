"""What every imported model has to do: values, a training step, a program, and back."""

import numpy as np

from burnbook.backend import Autodiff, Numpy
from burnbook.core.dtypes import Float
from burnbook.exporters import to_onnx
from burnbook.importers.onnx import load
from burnbook.optim import GradientsParams, SgdConfig
from burnbook.program import capture
from tests.importers.real.wheels import tensors_of

TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}


def session_of(path, threads=0):
    """A file in ONNX Runtime, without its remarks."""
    import onnxruntime as runtime

    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    providers = ["CPUExecutionProvider"]
    return runtime.InferenceSession(str(path), options, providers=providers)


def difference(found, wanted):
    """The largest, beside the largest of its output or 1; shapes are equal."""
    found = found if isinstance(found, tuple | list) else (found,)
    assert len(found) == len(wanted)
    largest = 0.0
    for ours, theirs in zip(found, wanted, strict=True):
        ours = np.asarray(ours)
        assert list(ours.shape) in (list(theirs.shape), list(theirs.shape) or [1])
        away = np.abs(ours.reshape(theirs.shape).astype(np.float64) - theirs)
        size = max(1.0, float(np.abs(theirs).max(initial=0)))
        largest = max(largest, float(away.max(initial=0)) / size)
    return largest


def trained(model):
    """The loss before and after a step down the gradient, and how many gradients.

    The loss is the mean square of the outputs, so every float one of them counts.
    """
    device = Autodiff(Numpy())
    module = load(model.path, device)
    given = model.given(model.batches[0])
    inputs = tensors_of(given, device)

    def loss_of(module):
        results = module.forward(*inputs)
        results = results if isinstance(results, tuple) else (results,)
        terms = [
            x.square().mean().to_device(device) for x in results if x.kind is Float
        ]
        return sum(terms[1:], terms[0])

    loss = loss_of(module)
    grads = GradientsParams.from_grads(loss.backward(), module)
    found = [grads.get(param.id) for _, param in module.named_params()]
    arrays = [np.asarray(grad) for grad in found if grad is not None]
    assert all(np.isfinite(a).all() for a in arrays), "a gradient is not finite"
    moving = sum(bool(np.any(a)) for a in arrays)
    size = float(np.sqrt(sum(float(np.square(a, dtype=float).sum()) for a in arrays)))
    rate = 1e-2 * float(loss.into_scalar()) / size**2 if size else 0.0
    module = SgdConfig().init().step(rate, module, grads)
    return float(loss.into_scalar()), float(loss_of(module).into_scalar()), moving


def program_of(model, module=None, given=None):
    """The model as a program, for every batch where the file has one."""
    module = module or load(model.path, Numpy())
    given = given or model.given(model.batches[0])
    inputs = dict(zip(given, tensors_of(given), strict=True))
    if not model.constants:
        return capture(module, *inputs.values(), batch=model.batch)
    fixed = {name: inputs.pop(name) for name in model.constants}

    def forward(*tensors):
        named = dict(zip(inputs, tensors, strict=True)) | fixed
        return module.forward(*(named[name] for name in given))

    return capture(forward, *inputs.values(), batch=model.batch)


def program_inputs(model, given):
    """The tensors that a program of the model takes."""
    return tensors_of({k: v for k, v in given.items() if k not in model.constants})


def written(model, program, folder):
    """The program as an ONNX file: what ONNX Runtime gives for one input."""
    path = to_onnx(program, folder / "back.onnx")
    session = session_of(path)

    def run(given):
        arrays = [t.to_data().to_numpy() for t in program_inputs(model, given)]
        pairs = zip(session.get_inputs(), arrays, strict=True)
        return session.run(None, {x.name: a.astype(TYPES[x.type]) for x, a in pairs})

    return run


def batches(model):
    """Those that a program of the model is tried with."""
    return model.batches if model.batch is not None else model.batches[:1]
