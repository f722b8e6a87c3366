"""Every call again, in burnbook: a table of adapters, and a rule for the rest.

The rule: a method has the name and the operands that it has in Burn, in the order in
which the Rust call names them. Only what is written otherwise in Python has a row.
"""

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from burnbook.backend import Autodiff
from burnbook.backend.base import Backend
from burnbook.nn.loss import CrossEntropyLoss
from burnbook.tensor import (
    ElementConversion,
    Shape,
    Tensor,
    TensorData,
    activation,
    module,
)
from burnbook.tensor.quantization import (
    MinMaxCalibration,
    QuantizationParameters,
    QuantizationScheme,
    QuantizedTensor,
)
from tests.oracle.burn.cases import NUMPY, Case, Listed, data_of, read, tensors
from tests.oracle.burn.layers import LAYERS, layer, params_in_order, run_layer
from tests.oracle.burn.texts import TEXTS, as_burn

Adapter = Callable[[Case, Backend], Any]
WITH_KIND = ("zeros", "ones", "full", "empty", "eye")
MADE = (
    *WITH_KIND,
    *("arange", "arange_step", "cartesian_grid", "from_ints", "one_hot"),
    *("triu_mask", "tril_mask", "diag_mask"),
)
SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
SIGNS["%"] = operator.mod
INFIX = re.compile(r"x ([-+*/%]) \w")


def answer(case: Case, device: Backend) -> list[Any]:
    """The outputs of a call, on this device (under Autodiff where Burn's was)."""
    if case.group == "gradient" or case.tracked is not None:
        if case.tracked is None:
            return _spread(TRACKING[case.op](case, Autodiff(device)))
        return _gradients(case, Autodiff(device))
    return _spread(call(case, device))


def call(case: Case, device: Backend) -> Any:
    """What a call gives, by its row or by the rule."""
    for table in (ROWS, LAYERS, TEXTS):
        row = table.get(f"{case.group}/{case.op}") or table.get(case.op)
        if row is not None:
            return row(case, device)
    if case.group in TEXTS:
        return TEXTS[case.group](case, device)
    if case.config is not None:
        return run_layer(case, tensors(case.inputs, device), layer(case, device))
    return _by_rule(case, case.operands(device), device)


def _by_rule(case: Case, operands: Sequence[Any], device: Backend) -> Any:
    """The function of Burn's name on the operands."""
    sign = INFIX.fullmatch(case.call.strip())
    if sign:
        return SIGNS[sign[1]](*operands)
    if case.op in MADE and not case.inputs:
        kind = {"kind": case.kind_of_output()} if case.op in WITH_KIND else {}
        return getattr(Tensor, case.op)(*operands, device, **kind)
    if case.call.lstrip().startswith(("functional", "burn::tensor::module")):
        return getattr(module, case.op)(*operands)
    if case.call.startswith(case.op + "(") or case.op == "cross_entropy_with_logits":
        return getattr(activation, case.op)(*operands)
    return getattr(operands[0], case.op)(*operands[1:])


def _spread(found: Any) -> list[Any]:
    """The outputs in one list: tuples and lists of tensors are spread."""
    if isinstance(found, Shape):
        return [Listed(found)]
    if isinstance(found, Listed):
        return [found]
    if isinstance(found, tuple | list):
        return [one for part in found for one in _spread(part)]
    return [found]


def _joined(function: Callable[..., Tensor]) -> Adapter:
    def row(case: Case, device: Backend) -> Tensor:
        return function(list(tensors(case.inputs, device).values()), case.args["dim"])

    return row


def _from_data(case: Case, device: Backend) -> Tensor:
    (one,) = case.inputs
    kind = case.kind_of_output()
    maker = Tensor[case.args["rank"]] if "rank" in case.args else Tensor
    return maker.from_data(data_of(one), device, kind=kind)


def _from_empty(case: Case, device: Backend) -> Tensor:
    return Tensor.from_data(np.zeros(case.args["shape"], np.float32), device)


def _one_hot(case: Case, device: Backend) -> Tensor:
    made = Tensor[case.args["rank"]] if "rank" in case.args else Tensor
    return made.one_hot(*case.operands(device), device)


def _indexed(case: Case, device: Backend) -> Any:
    """A method whose indices stand among the arguments."""
    found = tensors(case.inputs, device) | case.values()
    found["indices"] = Tensor.from_ints(found["indices"], device)
    return _by_rule(case, case.in_order(found), device)


def _is_close(case: Case, device: Backend) -> Any:
    x, y = tensors(case.inputs, device).values()
    given = {k: v for k, v in case.values().items() if v is not None}
    return getattr(x, case.op)(y, **given)


def _reshape(case: Case, device: Backend) -> Tensor:
    """In Rust the type of the sizes says whether 0 and −1 mean something else."""
    sizes = case.args["shape"]
    return case.operands(device)[0].reshape(
        Shape(sizes) if "[usize" in case.call else sizes
    )


def _ranges(case: Case, device: Backend) -> Any:
    found = tensors(case.inputs, device)
    ranges = [tuple(one) if one else None for one in case.args["ranges"]]
    return getattr(found["x"], case.op)(ranges, *list(found.values())[1:])


def _scheme(case: Case) -> QuantizationScheme:
    affine = case.args["scheme"] == "affine"
    schemes = QuantizationScheme
    return schemes.PerTensorAffine() if affine else schemes.PerTensorSymmetric()


def _codes(found: Tensor) -> Any:
    assert isinstance(found, QuantizedTensor)
    strategy = found.strategy
    told = {"scale": float(strategy.scale)}
    if hasattr(strategy, "offset"):
        told["offset"] = int(strategy.offset)
    return (TensorData.of(np.asarray(found.to_data().to_numpy())), told)


def _quantize_dynamic(case: Case, device: Backend) -> Any:
    return _codes(case.operands(device)[0].quantize_dynamic(_scheme(case)))


def _quantize(case: Case, device: Backend) -> Any:
    (x,) = tensors(case.inputs, device).values()
    scale = Tensor.from_floats([case.args["scale"]], device)
    offset = case.args.get("offset")
    if offset is not None:
        offset = Tensor.from_ints([offset], device)
    return _codes(x.quantize(_scheme(case), QuantizationParameters(scale, offset)))


def _q_params(case: Case, device: Backend) -> Any:
    (x,) = tensors(case.inputs, device).values()
    found = _scheme(case).compute_q_params(MinMaxCalibration().compute_range(x))
    return found.scale, found.offset


def _quantized(case: Case, device: Backend) -> Any:
    """An op on quantized inputs, and back to numbers."""
    parts = [
        t.quantize_dynamic(_scheme(case))
        for t in case.operands(device)[:]
        if isinstance(t, Tensor)
    ]
    op = case.op.removeprefix("quantized_")
    out = parts[0] if op == "dequantize" else getattr(parts[0], op)(*parts[1:])
    return out.dequantize()


def _conv(case: Case, found: dict[str, Tensor]) -> Any:
    a = case.values()
    transposed = "transpose" in case.op
    if case.op == "deform_conv2d":
        options = module.DeformConvOptions(
            a.get("stride", 1),
            a.get("padding", 0),
            a.get("dilation", 1),
            a["weight_groups"],
            a["offset_groups"],
        )
        bias, mask = found.get("bias"), found.get("mask")
        return module.deform_conv2d(
            found["x"], found["offset"], found["weight"], mask, bias, options
        )
    if transposed:
        options = module.ConvTransposeOptions(
            a["stride"], a["padding"], a["padding_out"], a["dilation"], a["groups"]
        )
    else:
        options = module.ConvOptions(
            a["stride"], a["padding"], a["dilation"], a["groups"]
        )
    function = getattr(module, case.op)
    return function(found["x"], found["weight"], found.get("bias"), options)


def _unfold(case: Case, found: dict[str, Tensor]) -> Any:
    a = case.values()
    options = module.UnfoldOptions(a["stride"], a["padding"], a["dilation"])
    return module.unfold4d(found["x"], a["kernel_size"], options)


def _interpolate(case: Case, found: dict[str, Tensor]) -> Any:
    a = case.values()
    options = module.InterpolateOptions(a["mode"])
    return module.interpolate(found["x"], a["output_size"], options)


def _elem(case: Case, _: Backend) -> Any:
    """One number of its type; a whole one is written with .0 in the file."""
    value, given = read(case.args["value"]), NUMPY[case.args["from"]]
    return ElementConversion.elem(given(value), case.args["to"])


def _convert(case: Case, _: Backend) -> Any:
    return data_of(case.inputs[0]).convert(case.args["dtype"])


# Under Autodiff


def _gradients(case: Case, device: Backend) -> list[Any]:
    """The output, and the gradients of (output · weights).sum()."""
    assert case.tracked is not None
    found = tensors(case.inputs, device)
    found = {k: t.require_grad() if k in case.tracked else t for k, t in found.items()}
    made = None
    if case.config is not None and case.op != "CrossEntropyLossGradient":
        made = layer(case, device)
        out = run_layer(case, found, made)
    else:
        out = _tracked(case, found, device)
    out = out[0] if isinstance(out, tuple) else out
    size = int(np.prod(out.dims()))
    flat = ((37 * np.arange(size)) % 23 - 11).astype(np.float32) / np.float32(10)
    weights = Tensor.from_data(flat.reshape(out.dims()), device)
    grads = (out * weights).sum().backward()
    told = [out.inner(), *(found[name].grad(grads) for name in case.tracked)]
    if made is not None:
        told += [p.grad(grads) for p in params_in_order(made, case)]
    return told


def _tracked(case: Case, found: dict[str, Tensor], device: Backend) -> Tensor:
    """The result of an op on tensors of which some are tracked."""
    if case.op in GRADIENT_ROWS:
        return GRADIENT_ROWS[case.op](case, found)
    if case.group == "chain":
        return CHAINS[case.op](**found)
    return _by_rule(case, case.in_order(found | case.values()), device)


def _loss(case: Case, found: dict[str, Tensor]) -> Tensor:
    return CrossEntropyLoss.new().forward(found["x"], found["y"])


GRADIENT_ROWS: dict[str, Callable[[Case, dict[str, Tensor]], Any]] = {
    "tanh_activation": lambda case, found: activation.tanh(found["x"]),
    "cat": lambda case, f: Tensor.cat(list(f.values()), case.args["dim"]),
    "stack": lambda case, f: Tensor.stack(list(f.values()), case.args["dim"]),
    "max_dim_with_indices": lambda c, f: f["x"].max_dim_with_indices(c.args["dim"])[0],
    "min_dim_with_indices": lambda c, f: f["x"].min_dim_with_indices(c.args["dim"])[0],
    "slice": lambda c, f: f["x"].slice([tuple(r) for r in c.args["ranges"]]),
    "slice_assign": lambda c, f: f["x"].slice_assign(
        [tuple(r) for r in c.args["ranges"]], f["v"]
    ),
    "unfold4d": _unfold,
    "interpolate": _interpolate,
    "CrossEntropyLossGradient": _loss,
    **dict.fromkeys(
        [
            *("conv1d", "conv2d", "conv3d", "deform_conv2d"),
            *("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
        ],
        _conv,
    ),
}


def _leaf(case: Case, device: Backend) -> list[Tensor]:
    return list(tensors(case.inputs, device).values())


def _is_require_grad(case: Case, device: Backend) -> Any:
    (x,) = _leaf(case, device)
    tracked = x.require_grad()
    return (
        x.is_require_grad(),
        tracked.is_require_grad(),
        (tracked * 2).is_require_grad(),
    )


def _set_require_grad(case: Case, device: Backend) -> Any:
    (x,) = _leaf(case, device)
    off = x.require_grad().set_require_grad(False)
    return x.set_require_grad(True).is_require_grad(), off.is_require_grad()


def _detach_result(case: Case, device: Backend) -> Any:
    x = _leaf(case, device)[0].require_grad()
    y = (x * 3).detach() * x
    return x.grad(y.sum().backward())


def _grad_unreached(case: Case, device: Backend) -> Any:
    x, y = (t.require_grad() for t in _leaf(case, device))
    return y.grad((x * 2).sum().backward())


def _require_grad_of_result(case: Case, device: Backend) -> Any:
    x = _leaf(case, device)[0].require_grad()
    return (x * 2).require_grad().is_require_grad()


def _grad_replace(case: Case, device: Backend) -> Any:
    x, y = _leaf(case, device)
    x = x.require_grad()
    grads = (x * 2).sum().backward()
    x.grad_replace(grads, y.inner())
    return x.grad(grads)


def _inner_outer(case: Case, device: Backend) -> Any:
    inner = _leaf(case, device)[0].inner()
    back = Tensor.from_inner(inner)
    return inner, back.is_require_grad(), back


TRACKING: dict[str, Adapter] = {
    "is_require_grad": _is_require_grad,
    "set_require_grad": _set_require_grad,
    "detach_result": _detach_result,
    "grad_unreached": _grad_unreached,
    "require_grad_of_result": _require_grad_of_result,
    "backward_untracked": lambda case, device: _leaf(case, device)[0].backward(),
    "grad_replace": _grad_replace,
    "inner_outer": _inner_outer,
}

# A few operations in a row, on views.

CHAINS: dict[str, Callable[..., Any]] = {
    "slice_matmul": lambda x, y: x.slice([(1, 3)]).matmul(y.slice([(0, 5), (1, 3)])),
    "expand_flip_mul": lambda x: (
        x.expand([4, 3]).mul(x.expand([4, 3]).flip([0, 1])).sum_dim(0)
    ),
    "flip_transpose_sort": lambda x: x.flip([1]).transpose().sort(1),
    "permute_softmax": lambda x: activation.softmax(x.permute([1, 2, 0]), 1),
    "transpose_matmul": lambda x, y: x.transpose().matmul(y),
    "transpose_gather": lambda x, i: x.transpose().gather(0, i),
    "stack_narrow_squeeze": lambda x, y: (
        Tensor.stack([x, y], 1).narrow(1, 1, 1).squeeze(1)
    ),
    "permute_conv2d": lambda x, w: module.conv2d(
        x.permute([0, 3, 1, 2]),
        w.transpose(),
        None,
        module.ConvOptions([1, 1], [1, 0], [1, 1], 1),
    ),
    "repeat_chunk": lambda x: x.repeat([2, 1]).chunk(2, 0),
    "transpose_sum_dim": lambda x: x.transpose().sum_dim(1) / 2,
    "transpose_argwhere": lambda x: x.transpose().bool_not().argwhere(),
    "transpose_var": lambda x: x.transpose().var(1),
    "expand_topk": lambda x: x.unsqueeze_dim(1).expand([3, 2, 4]).topk(2, 2),
    "transpose_display": lambda x: as_burn(str(x.transpose())),
    "clamp_int_remainder": lambda x: (
        ((x * 10.0).clamp(-7.0, 9.0).int() % 4).float() / 3.0
    ),
}


def _chain(case: Case, device: Backend) -> Any:
    return CHAINS[case.op](**tensors(case.inputs, device))


ROWS: dict[str, Adapter] = {
    "basic/empty": lambda c, d: Tensor.empty(c.args["shape"], d).shape,
    "basic/from_data": _from_data,
    "basic/from_data_empty": _from_empty,
    "basic/dims": lambda case, device: Listed(case.operands(device)[0].dims()),
    "basic/shape": lambda c, d: c.operands(d)[0].shape,
    "basic/to_device": lambda c, d: c.operands(d)[0].to_device(d),
    "basic/to_data": lambda c, d: c.operands(d)[0].transpose().to_data(),
    "basic/into_data": lambda c, d: c.operands(d)[0].permute([2, 0, 1]).into_data(),
    "basic/iter_dim": lambda c, d: list(c.operands(d)[0].iter_dim(c.args["dim"])),
    "basic/unsqueeze": lambda c, d: c.operands(d)[0].unsqueeze(c.args["rank"]),
    "basic/reshape": _reshape,
    "basic/slice": _ranges,
    "basic/slice_assign": _ranges,
    "basic/cat": _joined(Tensor.cat),
    "basic/stack": _joined(Tensor.stack),
    "numeric/is_close": _is_close,
    "numeric/all_close": _is_close,
    "numeric/gather": _indexed,
    "numeric/scatter": _indexed,
    "numeric/select": _indexed,
    "numeric/select_assign": _indexed,
    "float/one_hot": _one_hot,
    "float/random_like": lambda c, d: c.operands(d)[0].random_like().shape,
    "quantization/quantize_dynamic": _quantize_dynamic,
    "quantization/quantize": _quantize,
    "quantization/compute_q_params": _q_params,
    "quantization/dequantize": _quantized,
    "quantization/quantized_matmul": _quantized,
    "element/elem": _elem,
    "element/convert": _convert,
    **{f"chain/{op}": _chain for op in CHAINS},
}
