"""Waiting for what another process or thread does, and not for ever."""

import time


def wait_until(true, seconds=60.0):
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.01)
