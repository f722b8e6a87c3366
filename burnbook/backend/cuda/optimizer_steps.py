"""CuPy kernels for steps of the optimizers: one pass each.

A kernel is the formula for one element; CuPy makes the loop. What an optimizer's op
says about a variant (weight decay, Nesterov, cautious) comes as numbers.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from burnbook import ops
from burnbook.backend.cuda.source import kernel, served

ADAM = """
    T slope = g + penalty * p;
    m_new = beta_1 * m + (1 - beta_1) * slope;
    v_new = beta_2 * v + (1 - beta_2) * slope * slope;
    T below = v_new;{largest}
    T kept = cautious == 0 || (p >= 0) == (m_new >= 0) ? keep : 1;
    p_new = kept * p - step * m_new / (sqrt(below) * correction + epsilon);
"""
MOMENTUM = """
    T slope = g + penalty * p;
    T speed = momentum * v + rest * slope;
    v_new = speed;
    p_new = p - lr * (nesterov != 0 ? momentum * speed + slope : speed);
"""
ADAGRAD = """
    T slope = g + penalty * p;
    s_new = s + slope * slope;
    p_new = p - lr * slope / (sqrt(s_new) + epsilon);
"""
RMSPROP = """
    T slope = g + penalty * p;
    s_new = alpha * s + (1 - alpha) * slope * slope;
    T spread = s_new;{center}
    T u = slope / (sqrt(spread < 0 ? 0 : spread) + epsilon);{push}
    p_new = p - lr * u;
"""
CENTER = """
    a_new = alpha * a + (1 - alpha) * slope;
    spread = s_new - a_new * a_new;"""
PUSH = """
    u += momentum * b;
    b_new = u;"""
ADAN = """
    T change = g + pre;
    m_new = beta_1 * m + (1 - beta_1) * g;
    w_new = beta_2 * w + (1 - beta_2) * change;
    T ahead = g + beta_2 * change;
    s_new = beta_3 * s + (1 - beta_3) * ahead * ahead;
    T u = (first * m_new + second * w_new) / (sqrt(s_new) * correction + epsilon);
    p_new = keep_p * p - keep_u * u;
    pre_new = -g;
"""

# The arrays that come in, the numbers, the arrays that go out, and the formula. CuPy
# keeps the names n and i, and those that begin with _, for itself.
ADAM_NUMBERS = "step beta_1 beta_2 correction epsilon penalty keep cautious"
RMSPROP_NUMBERS = "lr alpha momentum epsilon penalty"
FORMULAS: dict[Any, tuple[str, str, str, str]] = {
    ops.sgd_step: ("p g", "lr penalty", "p_new", "p_new = p - lr * (g + penalty * p);"),
    ops.momentum_step: (
        "p g v",
        "lr momentum rest nesterov penalty",
        "p_new v_new",
        MOMENTUM,
    ),
    ops.adam_step: (
        "p g m v",
        ADAM_NUMBERS,
        "p_new m_new v_new",
        ADAM.format(largest=""),
    ),
    ops.amsgrad_step: (
        "p g m v x",
        ADAM_NUMBERS,
        "p_new m_new v_new x_new",
        ADAM.format(largest="\n    below = x > v_new ? x : v_new;\n    x_new = below;"),
    ),
    ops.adagrad_step: ("p g s", "lr epsilon penalty", "p_new s_new", ADAGRAD),
    ops.rmsprop_step: (
        "p g s",
        RMSPROP_NUMBERS,
        "p_new s_new",
        RMSPROP.format(center="", push=""),
    ),
    ops.rmsprop_momentum_step: (
        "p g s b",
        RMSPROP_NUMBERS,
        "p_new s_new b_new",
        RMSPROP.format(center="", push=PUSH),
    ),
    ops.rmsprop_centered_step: (
        "p g s b a",
        RMSPROP_NUMBERS,
        "p_new s_new b_new a_new",
        RMSPROP.format(center=CENTER, push=PUSH),
    ),
    ops.adan_step: (
        "p g m s w pre",
        "first second correction beta_1 beta_2 beta_3 epsilon keep_p keep_u",
        "p_new m_new s_new w_new pre_new",
        ADAN,
    ),
}


def one_pass(op: Any) -> Callable[..., Any]:
    """The kernel of an optimizer's step."""
    defaults = dict(op.attrs)

    def run(xp: Any, *values: Any, **attrs: Any) -> Any:
        if not served(*values):
            return None
        real = values[0].dtype.type
        facts = numbers(**(defaults | attrs))
        given = [real(facts[name]) for name in FORMULAS[op][1].split()]
        out = element_kernel(xp, op)(*values, *given)
        return tuple(out) if isinstance(out, (tuple, list)) else out

    return run


for _op in FORMULAS:
    kernel(_op)(one_pass(_op))


def numbers(**attrs: Any) -> dict[str, float]:
    """What the formulas ask for, from the attributes of an op."""
    lr, decay = attrs["lr"], attrs.get("decay", 0.0)
    found = {"momentum": 0.0, **attrs, "keep": 1 - lr * decay}
    found["rest"] = 1 - attrs.get("dampening", 0.0)
    if "time" not in attrs:
        return found
    rests = {n: 1 - attrs[n] ** attrs["time"] for n in attrs if n.startswith("beta_")}
    if "beta_3" not in rests:
        found |= {"step": lr / rests["beta_1"], "correction": rests["beta_2"] ** -0.5}
        return found
    found["first"] = lr / rests["beta_1"]
    found["second"] = lr * attrs["beta_2"] / rests["beta_2"]
    found["correction"] = rests["beta_3"] ** -0.5
    after = 1 / (1 + lr * decay)
    found["keep_p"] = found["keep"] if attrs["no_prox"] else after
    found["keep_u"] = 1.0 if attrs["no_prox"] else after
    return found


@cache
def element_kernel(xp: Any, op: Any) -> Any:
    """CuPy's element-by-element kernel for an op, for float and double."""
    arrays, scalars, outputs, formula = FORMULAS[op]
    typed = [
        ", ".join(f"T {name}" for name in text.split()) for text in (arrays, scalars)
    ]
    made = ", ".join(f"T {name}" for name in outputs.split())
    return xp.ElementwiseKernel(", ".join(typed), made, formula, f"burnbook_{op.name}")
