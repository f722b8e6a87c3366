"""Is every request to the kernel answered, also those that come while it answers?

Why: from 7.0.0 to 7.3.0 ipykernel sends its answers past the stream that reads requests
(https://github.com/ipython/ipykernel/pull/1529), and a request that comes at that
moment is not noticed: its cell shows [*] for ever. A reader who runs a cell just after
the kernel started meets it now and then; here it takes a few rounds.
"""

import sys
import time
from queue import Empty

from jupyter_client.manager import start_new_kernel

ROUNDS, REQUESTS, PATIENCE = 150, 8, 10.0


def main():
    """Ask in bursts; the exit status is 1 when an answer is missing."""
    manager, client = start_new_kernel()
    try:
        missing = 0
        for _ in range(ROUNDS):
            missing += unanswered(client)
            if missing:
                break
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    if missing:
        sys.stderr.write(f"the kernel left {missing} of {REQUESTS} unanswered\n")
        return 1
    sys.stdout.write(f"the kernel answered {ROUNDS * REQUESTS} requests\n")
    return 0


def unanswered(client):
    """How many requests of one burst get no answer."""
    waiting = set()
    for _ in range(REQUESTS):
        waiting.add(client.execute("1", silent=True))
        time.sleep(0.0007)  # so that some meet the answers to others
    try:
        while waiting:
            answer = client.get_shell_msg(timeout=PATIENCE)
            waiting.discard(answer["parent_header"].get("msg_id"))
    except Empty:
        pass
    return len(waiting)


if __name__ == "__main__":
    sys.exit(main())
