"""Every op that WGSL has a kernel for, beside burnbook."""

import numpy as np
import pytest

from burnbook.exporters.lowering.registry import FORMS
from burnbook.exporters.wgsl import to_wgsl, unsupported
from tests.support.gpu_here import needs_gpu
from tests.support.op_programs import rows, sample

pytestmark = needs_gpu


@pytest.mark.parametrize(("op", "row"), rows(FORMS))
def test_the_kernels_give_what_the_op_gives(op, row, tmp_path):
    program, arrays, wanted = sample(op, row)
    refused = unsupported(program)
    if refused:
        assert all("training" in why or "dropped" in why for *_, why in refused)
        return
    made = to_wgsl(program, tmp_path / "op.js")
    for one, other in zip(made.run(*arrays), wanted, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, 1e-5, 1e-5)
