"""Configs from damaged JSON: a config that reads back, or one clear error."""

import random
import time
import tracemalloc

from burnbook.config import Config
from burnbook.core.errors import ConfigError
from burnbook.optim import AdamConfig
from tests.support.mutation import mutate, mutations


class Inner(Config):
    sizes: list[int]
    name: str = "a"
    rate: float | None = None


class Outer(Config):
    inner: Inner
    optimizer: AdamConfig = AdamConfig()
    table: dict[str, float] = {"x": 1.5}  # noqa: RUF012 - as a reader would write it


COUNT = mutations(2000)


def test_mutated_configs_give_a_config_or_our_error(tmp_path):
    path, again = tmp_path / "config.json", tmp_path / "again.json"
    Outer(Inner([3, 4]), table={"x": 1.0, "y": -2e-7}).save(path)
    data, rng = path.read_bytes(), random.Random(5)
    slowest, longest, read_well = 0.0, 0, 0
    tracemalloc.start()
    for _ in range(COUNT):
        path.write_bytes(mutate(data, rng))
        start = time.process_time()
        try:
            found = Outer.load(path)
        except ConfigError as error:
            longest = max(longest, len(str(error)))
        else:
            found.save(again)
            assert repr(Outer.load(again)) == repr(found)
            read_well += 1
        slowest = max(slowest, time.process_time() - start)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert slowest < 30  # it ends, however slow the machine is
    assert longest < 2000
    assert peak < 4e6
    assert 0 < read_well < COUNT * 0.9
