"""One contender: makes its workload, then runs it for as long as it is told to."""

import json
import os
import resource
import statistics
import sys
import time
from importlib import import_module

# Of contenders with one thread: what else the machine does is not counted then.
ALONE = os.environ.get("BENCH_CLOCK") == "thread"
clock = time.thread_time if ALONE else time.perf_counter


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes elsewhere

    def answer(**facts) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answers.write(json.dumps({**facts, "peak": peak}) + "\n")
        answers.flush()

    module, name = sys.argv[1].split(":")
    started = time.perf_counter()
    try:
        step = getattr(import_module(module), name)(*json.loads(sys.argv[2]))
        made = time.perf_counter()
        step()
        first = time.perf_counter()
        step()
    except Exception as error:
        answer(error=f"{type(error).__name__}: {error}"[:200])
        return
    answer(build=made - started, first=first - made)
    for line in sys.stdin:
        times, end = [], time.perf_counter() + float(line) / 1e3
        least = 3 if float(line) else 1  # a slice of 0 ms is one run
        while len(times) < least or time.perf_counter() < end:
            before = clock()
            step()
            times.append(clock() - before)
        answer(median=statistics.median(times))


if __name__ == "__main__":
    main()
