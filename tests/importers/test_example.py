"""The example of an import: a file that PyTorch wrote, read without PyTorch."""

import re
from pathlib import Path

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.core.errors import DataError
from burnbook.examples.pytorch_import.__main__ import main
from burnbook.examples.pytorch_import.model import DIGITS_PT, Net, load
from burnbook.importers import PytorchReader, PytorchStore

ROOT = Path(__file__).resolve().parents[2]
DEVICE = Numpy()


def test_every_name_of_the_file_has_its_place():
    _, result = Net.init(DEVICE).load_from(PytorchStore.from_file(DIGITS_PT))
    assert len(result.applied) == 10
    assert result.missing == result.unused == result.errors == ()


def test_a_network_that_pytorch_trained_reads_digits(capsys):
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    from burnbook.data import DigitsDataset
    from burnbook.examples.guide.data import MnistBatcher

    digits = list(DigitsDataset.test())
    output = load(DEVICE).forward(MnistBatcher(DEVICE).batch(digits).images)
    labels = [item.label for item in digits]
    assert (np.asarray(output.argmax(1)).ravel() == labels).mean() > 0.95
    assert main(42) == labels[42]
    assert capsys.readouterr().out == "Image 42: predicted 5, expected 5\n"
    with pytest.raises(DataError, match="there is no image 1000"):
        main(1000)


def test_the_program_in_the_chapter_is_that_of_the_file():
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle here")
    source = (ROOT / "notebooks/src/07_3_pytorch.py").read_text(encoding="utf-8")
    text = "\n".join(line.removeprefix("# ") for line in source.splitlines())
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (program,) = [each for each in programs if "digits.pt" in each]
    names: dict = {}
    exec(program.replace("\n#\n", "\n\n"), names)
    theirs = names["Net"]()
    theirs.load_state_dict(torch.load(DIGITS_PT, weights_only=True), strict=True)
    theirs.eval()
    x = np.random.default_rng(3).random((4, 28, 28), np.float32)
    from burnbook.tensor import Tensor

    ours = load(DEVICE).forward(Tensor[3].from_numpy(x, DEVICE))
    with torch.no_grad():
        wanted = theirs(torch.from_numpy(x)[:, None]).numpy()
    np.testing.assert_allclose(np.asarray(ours), wanted, atol=1e-4, rtol=1e-4)
    assert PytorchReader(DIGITS_PT).metadata().format_type == "zip"
