"""Burn pads as the layer does, or it is refused: every kernel, dilation, stride."""

import itertools
import re

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.exporters.rust.layers import Untranslatable, padding_of
from burnbook.exporters.rust.text import Dialect
from tests.nn.test_same_padding import PADDED, made, picture, rank_of

WINDOWS = list(itertools.product((1, 2, 3, 4, 5), (1, 2, 3), (1, 2)))


def of_burn(version, text, size, kernel, stride):
    """What Burn pads before and behind each dim, from the text of the padding."""
    numbers = [int(n) for n in re.findall(r"\d+(?=[,)])", text)]
    rank = len(size)
    if numbers:
        return list(zip(numbers[:rank], numbers[-rank:], strict=True))
    if text.endswith("Valid"):
        return [(0, 0)] * rank
    rows = zip(size, kernel, stride, strict=True)
    if version == "0.15":
        return [(max(0, -(-(s * (n - 1) - n + k) // 2)),) * 2 for n, k, s in rows]
    needed = [max(0, (-(-n // s) - 1) * s + k - n) for n, k, s in rows]
    return [(pad // 2, pad - pad // 2) for pad in needed]


@pytest.mark.parametrize("config", PADDED, ids=lambda c: c.__name__)
@pytest.mark.parametrize("version", ["0.15", "0.22"])
@pytest.mark.parametrize("padding", ["Same", "SymmetricSame", "Valid"])
def test_padding_is_written_as_burn_computes_it(config, version, padding):
    written = 0
    rank = rank_of(config)
    for kernel, dilation, stride in WINDOWS:
        layer = made(config, kernel, dilation, stride, padding)
        try:
            text = str(padding_of(layer, Dialect.of(version)))
        except Untranslatable:
            continue
        written += 1
        along = ((kernel,) * rank, (stride,) * rank)
        spread = ((dilation if hasattr(layer, "dilation") else 1),) * rank
        for n in (6, 7):
            ours = layer.padding.sides((n,) * rank, *along, spread)
            assert ours == of_burn(version, text, (n,) * rank, *along)
    most = 30 if padding == "Valid" else 9  # odd kernels of stride 1, at least
    assert written >= most


@pytest.mark.parametrize("config", PADDED, ids=lambda c: c.__name__)
def test_onnx_computes_what_same_computes(config):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from burnbook.exporters.onnx import onnx_model
    from tests.support.onnx_sessions import session

    if config.__name__.startswith("Deform"):
        pytest.skip("its offsets are another input")
    device = Numpy()
    for kernel, dilation, stride in ((2, 1, 1), (3, 2, 1), (4, 3, 1)):
        layer = made(config, kernel, dilation, stride, device=device)
        x = picture(config, device)
        run = session(onnx_model(layer, x))
        found = run.run(None, {run.get_inputs()[0].name: np.asarray(x)})[0]
        assert np.allclose(found, layer.forward(x), atol=1e-5)
