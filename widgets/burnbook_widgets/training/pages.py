"""Noticing that a page has connected to this kernel.

Why: while a cell keeps the kernel, a page that was loaded anew can ask for nothing, so
it would not see a training until the cell ends. But it subscribes to what the kernel
publishes, and ipykernel (7 and newer) handles that on a thread of its own. Where it
does not, nothing is noticed: such a page sees the training when the cell has ended.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any


class Pages:
    """Counts the subscriptions to what this kernel publishes."""

    def __init__(self) -> None:
        self.count = 0
        self._watched: Any = None

    def watch(self) -> None:
        """Begin to count, once for each kernel."""
        with contextlib.suppress(Exception):  # another kernel, an older one: no count
            self._watch()

    def _watch(self) -> None:
        ipython = sys.modules["IPython"].get_ipython()
        thread: Any = ipython.kernel.iopub_thread
        if thread is self._watched:
            return
        stream, usual = thread._xpub_stream, thread._handle_subscription
        every = sys.modules["zmq"].XPUB_VERBOSE  # also what others had subscribed to

        def handle(frames: Any) -> None:
            if bytes(frames[0]) == b"\x01":  # to everything, as pages and servers do
                self.count += 1
            else:
                usual(frames)

        def begin() -> None:
            thread.socket.setsockopt(every, 1)
            stream.on_recv(handle)

        thread.io_loop.add_callback(begin)
        self._watched = thread


PAGES = Pages()
