"""What a thing is for in a training: the model, its optimizer, the rate, gradients.

Asked after a call has failed: whether what was given would do in another order, and how
a class, a config or another container of gradients becomes what was wanted.
"""

import inspect
from collections.abc import Sequence
from numbers import Real
from typing import Any

from burnbook.core.argument_cures import init_of, is_tensor, made_by_config, required
from burnbook.core.call_source import own_call, texts_of_call

MODEL, OPTIMIZER, RATE, GRADIENTS, LOADER = (
    "the model",
    "the optimizer",
    "the learning rate",
    "the gradients",
    "the loader of batches",
)

CONTAINERS = ("Gradients", "GradientsParams", "GradientsAccumulator")
WORDS = {
    MODEL: "model",
    OPTIMIZER: "optim",
    RATE: "1e-3",
    GRADIENTS: "grads",
    LOADER: "loader",
}

OWNERS = {"step": "optim.", "accumulate": "accumulator.", "build": "builder."}


def role_of(value: object) -> str:
    """What a thing is for, whether it is an object, its class or its config.

    Example:
        >>> role_of(1e-3), role_of("adam")
        ('the learning rate', '')
    """
    if isinstance(value, Real) and not isinstance(value, bool):
        return RATE
    cls = value if isinstance(value, type) else type(value)
    kind: Any = (made_by_config(cls) if hasattr(cls, "to_json") else None) or cls
    if hasattr(kind, "find_part"):
        return MODEL
    if any(base.__name__ in CONTAINERS for base in kind.__mro__):
        return GRADIENTS
    if hasattr(kind, "num_items") and hasattr(kind, "set_epoch"):
        return LOADER
    step = inspect.unwrap(kind.step) if hasattr(kind, "step") else None
    if step is None or not hasattr(kind, "into_record"):
        return ""
    return RATE if len(inspect.signature(step).parameters) == 1 else OPTIMIZER


def in_form(value: object, text: str | None, model: str = "model") -> str:
    """Code that makes what was wanted of a class, a config, or other gradients.

    text: what the reader wrote for it; model: what they call the model.
    """
    cls: Any = value if isinstance(value, type) else type(value)
    made = made_by_config(cls) if hasattr(cls, "to_json") else None
    if isinstance(value, type):
        return f"{text or cls.__name__}({required(cls)}){init_of(cls) if made else ''}"
    if made is not None:
        return f"{text or f'{cls.__name__}(…)'}{init_of(cls)}"
    if hasattr(cls, "accumulate"):
        return f"{text or 'accumulator'}.grads()"
    if cls.__name__ == "Gradients":
        return f"GradientsParams.from_grads({text or 'grads'}, {model})"
    if is_tensor(value):
        return f"GradientsParams.from_grads({text or 'loss'}.backward(), {model})"
    return text or "…"


def in_right_order(
    call: str, roles: Sequence[str], given: Sequence[Any]
) -> tuple[str, str] | None:
    """What is wrong, and the call as it should be, if another order has all roles.

    call: the name of what was called. None where the order is right, or unknown.
    """
    found = [role_of(value) for value in given]
    if found == [*roles] or sorted(found) != sorted(roles):
        return None
    own = own_call(call)
    texts: Sequence[str | None] = own.args if own else ()
    if len(texts) != len(given):
        texts = [None] * len(given)
    pairs = {role: (v, t) for role, v, t in zip(found, given, texts, strict=True)}
    model = pairs.get(MODEL, (None, None))[1] or "model"
    shown = [
        in_form(value, text or WORDS[role], model)
        for role, (value, text) in ((role, pairs[role]) for role in roles)
    ]
    first, *middle, last = roles
    order = f"{first} comes first, {''.join(f'then {r}, ' for r in middle)}then {last}"
    of = own.of if own else f"{OWNERS.get(call, '')}{call}"
    return order, f"{of}({', '.join(shown)})"


def wrong_form(
    call: str, place: int, value: object, role: str, model: int | None = None
) -> tuple[str, str] | None:
    """What is wrong with a class or a config in place of the thing, and the code.

    place: of the argument; model: that of the model, of which gradients are. None where
    it is not one of them.
    """
    if role_of(value) != role and not (role is GRADIENTS and is_tensor(value)):
        return None
    texts = texts_of_call(call)
    text = texts[place] if 0 <= place < len(texts) else None
    named = texts[model] if model is not None and model < len(texts) else None
    cure = in_form(value, text, named or "model")
    if cure == (text or "…"):
        return None
    name = value.__name__ if isinstance(value, type) else type(value).__name__
    if role is GRADIENTS:
        return f"{name} is {_kind(value)}, not GradientsParams", cure
    kind = "a class" if isinstance(value, type) else "a config"
    return f"{name} is {kind}, not {role} itself", cure


def rate_of(value: object) -> str | None:
    """The number that a text or a tensor stands for, as code; None for anything else.

    Example:
        >>> rate_of("1e-3"), rate_of("fast")
        ('0.001', None)
    """
    if is_tensor(value):
        return "lr.into_scalar(), a number of Python"
    try:
        return repr(float(value)) if isinstance(value, str) else None
    except ValueError:
        return None


def _kind(value: object) -> str:
    cls: Any = type(value)
    if hasattr(cls, "accumulate"):
        return "an accumulator"
    return "what backward() gives" if cls.__name__ == "Gradients" else "a tensor"
