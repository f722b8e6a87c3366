"""The same batch, as many steps as are wanted: a sampler of a dataset of one item."""

from burnbook.data import DataLoaderBuilder, SamplerDataset
from tests.support.tiny_training import (
    DEVICE,
    Batches,
    build,
    builder,
    items,
    log_lines,
)


def test_one_batch_is_trained_on_for_as_many_steps_as_are_drawn(tmp_path):
    whole = Batches().batch(items())
    inner = Batches().batch(items(), DEVICE.inner)
    hand_out = DataLoaderBuilder(lambda items: items[0])
    steps = hand_out.build(SamplerDataset([whole], 20))
    assert all(batch is whole for batch in steps)
    learner = build(builder(tmp_path, 1), lr=0.05)
    learner.fit(steps, hand_out.build([inner]))
    losses = [
        float(line.split(",")[0]) for line in log_lines(tmp_path, "train", "Loss")
    ]
    assert len(losses) == 20
    assert losses[-1] < losses[0]
    assert len(log_lines(tmp_path, "valid", "Loss")) == 1
