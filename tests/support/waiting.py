"""Waiting for what another process or thread does, and not for ever."""

import time


def wait_until(true, seconds=60.0, seen=lambda: "nothing to show"):
    """Wait until it is true; `seen` tells of what was there instead."""
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, f"waited in vain, last seen: {seen()}"
        time.sleep(0.01)
