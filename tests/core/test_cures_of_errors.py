"""Every cure in the errors of tests/errors that is code, applied where the error came.

The members are the rows whose failing line is a call and whose cure, or one of its
alternatives, is an expression. The names in a cure are those of the call: `x` is what
the method was asked of, the others its arguments by their names. An input that the cure
changes takes its place in the same call, which then works; a cure that is the whole
call, or makes a thing, is run as it is.
"""

import ast
import inspect
import io
import re
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest

import burnbook
from burnbook import optim, train
from burnbook.core.errors import BurnbookError
from burnbook.prelude import Config, Module, Numpy, Tensor
from tests.core.test_errors import rows


def alternatives(cure):
    """The pieces of a cure that are code: one or more, none for advice in words."""
    found = []
    for part in re.split(r"; or |, or |; | or |: ", cure):
        code = longest_code(part)
        if code:
            found.append(code)
    return found


def longest_code(text):
    """The longest beginning that is an expression with a call or an attribute."""
    if "…" in text:
        return None
    for end in [len(text), *[m.start() for m in re.finditer(r"[,: ]", text)][::-1]]:
        piece = text[:end].strip()
        try:
            node = ast.parse(piece, mode="eval").body
        except (SyntaxError, ValueError):
            continue
        if isinstance(node, (ast.Call, ast.BinOp, ast.BoolOp)):
            return piece
    return None


def members():
    found = []
    for name, (code, text) in rows().items():
        cure = text.partition("\n  try: ")[2]
        try:
            last = ast.parse(code).body[-1]
        except (SyntaxError, IndexError):
            continue
        call = getattr(last, "value", None)
        if isinstance(last, ast.Expr) and isinstance(call, ast.Call):
            found += [(name, piece) for piece in alternatives(cure)]
    return found


MEMBERS = members()


def applied(name, cure):
    """Run the row without its last line, then the cure in its place."""
    code = rows()[name][0]
    *before, last = ast.parse(code).body
    names = {"np": np, "burnbook": burnbook}
    exec("from burnbook.prelude import *", names)
    with tempfile.TemporaryDirectory() as folder:
        names["tmp_path"] = Path(folder)
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            exec(compile(ast.Module(before, []), "<row>", "exec"), names)
            return apply_to(last.value, cure, names)


def evaluated(node, names):
    return eval(compile(ast.Expression(node), "<row>", "eval"), names)


def names_where_it_failed(call, names):
    """The names of the functions that ran when the call failed, innermost first."""
    try:
        evaluated(call, dict(names))
    except Exception as error:
        frames, at = [], error.__traceback__.tb_next
        while at is not None:
            frames.append(dict(at.tb_frame.f_locals))
            at = at.tb_next
        found = {}
        for frame in frames[1:]:
            found |= {n: v for n, v in frame.items() if not n.startswith("_")}
        return found
    return {}


CALLED = {  # what a cure calls the thing that a call was asked of
    Module: "model",
    Config: "config",
    optim.OptimizerAdaptor: "optim",
    train.Learner: "learner",
    train.LearnerBuilder: "builder",
    Tensor: "x",
}


def apply_to(call, cure, names):
    inner = names_where_it_failed(call, names)
    inputs, of, method = {}, None, None
    if isinstance(call.func, ast.Attribute):
        of = evaluated(call.func.value, names)
        method = getattr(of, call.func.attr, None)
        called = [name for kind, name in CALLED.items() if isinstance(of, kind)]
        inputs = dict.fromkeys(called, of)
        if isinstance(of, Tensor):
            inputs["tensor"] = of
    else:
        method = evaluated(call.func, names)
    if method is None:  # the name is not there: the cure is all
        return eval(cure, {**inner, **names, **inputs})
    args = [evaluated(a, names) for a in call.args if not isinstance(a, ast.Starred)]
    named = {k.arg: evaluated(k.value, names) for k in call.keywords if k.arg}
    try:
        bound = inspect.signature(method).bind(*args, **named).arguments
    except (TypeError, ValueError):
        bound = {}
    space = {"device": Numpy(), **inner, **names, **inputs, **bound}
    first = re.match(r"[a-zA-Z_]\w*|", cure)[0]
    if first not in names and hasattr(of, first) and cure[len(first) :][:1] == "(":
        return eval(f"_of.{cure}", {**space, "_of": of})
    if "(...)" in cure:
        return None  # it shows where, not what
    pieces = [each for each in cure.split(" and ") if each]
    changed = {re.match(r"\w*", each)[0]: eval(each, space) for each in pieces}
    takes_place = all(n in bound and isinstance(bound[n], Tensor) for n in changed)
    if takes_place and f".{getattr(call.func, 'attr', '')}(" not in cure:
        given = {**bound, **changed}
        return method(*given.values()) if not named else method(**given)
    return list(changed.values())


USED_UP = "the row has used its graph up, so the line needs another loss"
NO_GPU = "there is no GPU here"
OTHER_X = "the line is for what a layer inside of the model is given"
IN_WORDS = "a piece of a longer line: the row has no object to ask it of"
TURNED = "the parameters have the names of the cure, and hold what was turned"
TWO_FAULTS = "the row has another fault, which is answered next"
# Why a cure that is code does not work alone in its row.
NOT_ALONE = {
    **dict.fromkeys(
        [
            "graph-used-up",
            "graph-used-up-watched",
            "backward-twice",
            "grad-of-a-result",
            "step-of-another-model",
            "accumulate-what-backward-gave",
            "step-with-used-gradients",
            "lbfgs-gradient",
            "train-output-gradients",
        ],
        USED_UP,
    ),
    **dict.fromkeys(["zeros-on-cuda", "to-device-text"], NO_GPU),
    **dict.fromkeys(
        [
            "validation-on-autodiff",
            "flatten-forgotten",
            "channels-last",
            "an-option-with-a-gradient",
        ],
        OTHER_X,
    ),
    **dict.fromkeys(
        [
            "arange-of-floats",
            "grad-without-gradients",
            "functional-of-nn",
            "einsum-list",
            "einsum-bool",
            "einsum-kinds",
            "einsum-backends",
            "cross-entropy-swapped",
            "binary-swapped",
            "quantize-require-grad",
            "save-file-swapped",
            "runs-compare-one",
            "runs-compare-none",
            "safetensors-writes-pytorch",
            "writer-exists",
            "writer-completed",
            "checkpointing-misspelled",
            "resume-finished",
            "early-stopping-without-validation",
            "plateau-without-validation",
            "save-without-chapters",
        ],
        IN_WORDS,
    ),
    **dict.fromkeys(
        ["loss-ctc-kind", "map-with-a-class", "cross-entropy-shares-of-images"],
        TWO_FAULTS,
    ),
    "build-turned": TURNED,
    "fit-loaders-in-a-list": TURNED,
}


def verdict(name, cure):
    try:
        applied(name, cure)
    except NameError:
        return "names"  # of a class of the reader, a device: checked elsewhere
    except BurnbookError as error:
        return f"refused: {type(error).__name__}: {str(error).splitlines()[0]}"
    except Exception as error:
        return f"failed: {type(error).__name__}: {error}"
    return ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(8))
def test_the_cure_works_in_the_place_of_the_error(part):
    wrong = []
    for name, cure in MEMBERS[part::8]:
        found = verdict(name, cure)
        if found not in ("", "names") and name not in NOT_ALONE:
            wrong.append(f"{name} | {cure} | {found}"[:300])
    assert not wrong


def test_what_does_not_work_alone_is_still_a_row():
    assert set(NOT_ALONE) <= {name for name, _ in MEMBERS}
    assert len(MEMBERS) > 300


if __name__ == "__main__":
    import collections

    count = collections.Counter()
    for name, cure in MEMBERS:
        found = verdict(name, cure)
        count[found.split(":")[0]] += 1
        if found:
            print(f"{name} | {cure} | {found}"[:230])
    print(count)
