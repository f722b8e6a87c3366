"""Kernels that look at what they are called with, as numba would.

Machine code that is kept takes any array for the one it was compiled for. The library
sees to it that arrays are right; in tests, every call is looked at once more.
"""

import functools
import types

import numpy as np

from burnbook.backend.compiled.runtime import jit

KINDS = {"b1": "bool", **{f"{c}{n}": f"{c}{n}" for c in "iuf" for n in (1, 2, 4, 8)}}


def split(signature):
    """The types of the arguments: "void(f4[:,::1], i8)" → ["f4[:,::1]", "i8"]."""
    inside, depth, found = signature[signature.index("(") + 1 : -1], 0, [""]
    for c in inside:
        depth += (c in "[(") - (c in "])")
        if c == "," and depth == 0:
            found.append("")
        elif c != " ":
            found[-1] += c
    return [one for one in found if one]


def fits(value, kind):
    """Whether a value is of a type that a signature names."""
    name, bracket, dims = kind.partition("[")
    if name not in KINDS:
        return True  # a tuple
    if not bracket:
        return not isinstance(value, np.ndarray)
    dims = dims.rstrip("]").split(",")
    return (
        type(value) is np.ndarray
        and value.dtype == np.dtype(KINDS[name])
        and value.ndim == len(dims)
        and (dims[-1] != "::1" or value.flags.c_contiguous)
        and (dims[0] != "::1" or value.flags.f_contiguous)
        and value.flags.aligned
        and value.flags.writeable
    )


def checked(kernel_with):
    """The same decorator, for kernels that look at their arguments."""

    def checked_kernel_with(signature, **flags):
        kinds, decorate = split(signature), kernel_with(signature, **flags)

        def make(function):
            kernel = decorate(function)
            if not isinstance(kernel, types.BuiltinFunctionType):
                return kernel

            @functools.wraps(function)
            def call(*args):
                assert len(args) == len(kinds), f"{function.__name__}{signature}"
                for value, kind in zip(args, kinds, strict=True):
                    assert fits(value, kind), (function.__name__, kind, value)
                return kernel(*args)

            if id(kernel) in jit._kept:  # kernels compiled later may use it
                jit._kept[id(call)] = call, jit._kept[id(kernel)][1]
            return call

        return make

    return checked_kernel_with


def check_all():
    """Let every kernel that is loaded from now on look at its arguments."""
    jit.kernel_with = checked(jit.kernel_with)
