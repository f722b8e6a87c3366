"""Every op that JavaScript has a form for, beside burnbook."""

import numpy as np
import pytest

from burnbook.exporters.javascript import to_javascript, unsupported
from burnbook.exporters.lowering.registry import FORMS
from tests.support.node_models import needs_node, predicted
from tests.support.op_programs import rows, sample

pytestmark = needs_node


@pytest.mark.parametrize(("op", "row"), rows(FORMS))
def test_node_gives_what_the_op_gives(op, row, tmp_path):
    program, arrays, wanted = sample(op, row)
    refused = unsupported(program)
    if refused:
        assert all("training" in why or "dropped" in why for *_, why in refused)
        return
    made = to_javascript(program, tmp_path / "op.mjs")
    found = predicted(made, *arrays).values()
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, 1e-5, 1e-5)
