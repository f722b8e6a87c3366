"""Models of others, imported, beside ONNX Runtime: python -m tests.bench models.

Every model is imported, trained by one step, captured, compiled and written back by a
process of its own; then three processes take turns: ONNX Runtime, the module step by
step, and its compiled program, with one thread each and inputs as in use. What
counts is the time of that thread, which a busy machine changes least. Models are those
of tests/importers/real/wheels.py whose wheels are installed.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.bench.rounds import ROOT, Contender, Result, compare
from tests.importers.real.wheels import MODELS, tensors_of

ONE_THREAD = {"BURNBOOK_THREADS": "1", "OMP_NUM_THREADS": "1", "BENCH_CLOCK": "thread"}
HEAD = (
    "| model | nodes | import, s | trains | captured | back | ONNX Runtime, ms "
    "| eager ÷ | captured ÷ |\n|---|---|---|---|---|---|---|---|---|"
)


def model_of(name):
    return next(model for model in MODELS if model.name == name)


def runtime(name):
    """A run of the file in ONNX Runtime."""
    from tests.importers.real.checks import session_of

    model = model_of(name)
    session, given = session_of(model.path, 1), model.in_use()
    return lambda: session.run(None, given)


def eager(name):
    """A forward pass of the imported module."""
    from burnbook.backend import Numpy
    from burnbook.importers.onnx import load

    model = model_of(name)
    module, inputs = load(model.path, Numpy()), tensors_of(model.in_use())
    return lambda: module.forward(*inputs)


def captured(name):
    """A run of the compiled program, whose loops are machine code from the start."""
    from burnbook.backend import Numpy
    from tests.importers.real.checks import program_inputs, program_of

    model = model_of(name)
    given = model.in_use()
    program = program_of(model, given=given).compile(Numpy(compiled=True))
    inputs = program_inputs(model, given)
    return lambda: program(*inputs)


def facts(name):
    """What a model does, as words for the table, and seconds of the import."""
    import onnx

    from burnbook.backend import Numpy
    from burnbook.importers.onnx import load
    from tests.importers.real import checks

    model = model_of(name)
    began = time.perf_counter()
    module = load(model.path, Numpy())
    found = {"import": time.perf_counter() - began}
    found["nodes"] = count(onnx.load(model.path).graph)
    session = checks.session_of(model.path)

    def attempt(what, work):
        try:
            found[what] = work()
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            found[what] = f"no ({' '.join(told.split())[:160]})"

    def train():
        before, after, moving = checks.trained(model)
        return "yes" if moving and after < before else "no"

    def near(run, sizes):
        away = 0.0
        for batch in sizes:
            given = model.given(batch, 1)
            away = max(away, checks.difference(run(given), session.run(None, given)))
        return "yes" if away <= model.near else f"no ({away:.0e})"

    def as_program():
        compiled = program[0].compile()
        run = lambda given: compiled(*checks.program_inputs(model, given))  # noqa: E731
        said = near(run, checks.batches(model))
        return said if model.batch is not None or said != "yes" else "one batch"

    def back():
        with tempfile.TemporaryDirectory() as folder:
            run = checks.written(model, program[0], Path(folder))
            return near(run, checks.batches(model))

    program = []
    attempt("train", train)
    attempt("captured", lambda: program.append(checks.program_of(model, module)))
    if program:
        attempt("captured", as_program)
        attempt("back", back)
    else:
        found["back"] = "no"
    return found


def count(graph):
    """Nodes but for constants, those of branches and bodies too."""
    here = sum(node.op_type != "Constant" for node in graph.node)
    inner = [a.g for n in graph.node for a in n.attribute if a.HasField("g")]
    return here + sum(map(count, inner))


def row(model, rounds, milliseconds):
    """A line of the table, and the two ratios; None where there is none."""
    code = "import json; from tests.bench.imported import facts; print(json.dumps("
    command = [sys.executable, "-c", f"{code}facts({model.name!r})))"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        return f"| {model.name} | {done.stderr.strip().splitlines()[-1][:200]} |", ()
    told = json.loads(done.stdout.splitlines()[-1])
    here = "tests.bench.imported"
    contenders = [
        Contender(word, f"{here}:{word}", (model.name,), ONE_THREAD)
        for word in ("runtime", "eager", "captured")
    ]
    results, _ = compare(contenders, rounds, milliseconds)
    return line_of(model, told, results)


def row_of_one_process(model, rounds, milliseconds):
    """The same in this process, which has to have one thread: quicker, less apart."""
    told = facts(model.name)
    steps = []
    for word, make in (("runtime", runtime), ("eager", eager), ("captured", captured)):
        with suppress(Exception):  # the facts tell what is wrong
            steps.append((word, make(model.name)))
    times = {word: [] for word, _ in steps}
    for _, step in steps:
        step()
    for _ in range(rounds):
        for word, step in steps:
            took, end = [], time.thread_time() + milliseconds / 1e3
            while len(took) < 3 or time.thread_time() < end:
                began = time.thread_time()
                step()
                took.append(time.thread_time() - began)
            times[word].append(statistics.median(took))
    results = []
    for word, own in times.items():
        pairs = zip(own, times["runtime"], strict=True)
        ratios = [mine / theirs for mine, theirs in pairs]
        spread = min(own) * 1e3, max(own) * 1e3
        middle = statistics.median(own) * 1e3, spread, statistics.median(ratios)
        results.append(Result(word, *middle, 0.0, 0.0, ratios))
    return line_of(model, told, results)


def line_of(model, told, results):
    """A line of the table, and the two ratios; None where there is none."""
    by_name = {result.name: result for result in results}
    cells, ratios = [], []
    for word in ("runtime", "eager", "captured"):
        result = by_name.get(word)
        if result is None:
            cells.append("–")
            ratios.append(None)
            continue
        low, high = result.spread
        spread = f"({low:.2f}–{high:.2f})"
        if word != "runtime":
            low, high = min(result.ratios), max(result.ratios)
            spread = f"({low:.2f}–{high:.2f})"
            ratios.append(result.ratio)
        figure = result.milliseconds if word == "runtime" else result.ratio
        cells.append(f"{figure:.2f} {spread}")
    words = [told[key] for key in ("train", "captured", "back")]
    line = [model.name, told["nodes"], f"{told['import']:.2f}", *words, *cells]
    return "| " + " | ".join(map(str, line)) + " |", ratios


def main(arguments):
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("models", nargs="*", help="parts of their names")
    asked.add_argument("--share", default="1/1", help="2/4: the second of four")
    asked.add_argument("--together", action="store_true", help="in this process")
    asked.add_argument("--rounds", type=int, default=7)
    asked.add_argument("--milliseconds", type=float, default=150)
    options = asked.parse_args(arguments)
    print(HEAD, flush=True)
    found = []
    first, shares = map(int, options.share.split("/"))
    for model in MODELS[first - 1 :: shares]:
        if options.models and not any(part in model.name for part in options.models):
            continue
        if not model.is_installed:
            print(f"| {model.name} | its wheel is not installed |", flush=True)
            continue
        how = row_of_one_process if options.together else row
        line, ratios = how(model, options.rounds, options.milliseconds)
        print(line, flush=True)
        found.append(ratios)
    for which, word in enumerate(("eager", "captured")):
        known = [r[which] for r in found if r and r[which]]
        if known:
            low, high = min(known), max(known)
            print(
                f"{word} ÷ ONNX Runtime: {statistics.median(known):.2f} in the median"
                f" of {len(known)} ({low:.2f} to {high:.2f})"
            )
