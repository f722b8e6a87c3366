"""Which names in a pickle may stand for an object that is only described.

Nothing is imported or called in either case. A class says no more than what something
was; a function that a file wants to have called may be an attack, so the file is
refused with its name.
"""

from __future__ import annotations

import sys

#: Parts of Python whose objects are data: checkpoints have them beside the weights.
DATA = frozenset(
    [
        "__main__",
        "argparse",
        "array",
        "collections",
        "copyreg",
        "dataclasses",
        "datetime",
        "decimal",
        "enum",
        "fractions",
        "ipaddress",
        "itertools",
        "logging",
        "math",
        "numbers",
        "operator",
        "pathlib",
        "random",
        "re",
        "string",
        "time",
        "types",
        "typing",
        "uuid",
        "zoneinfo",
        "_codecs",
        "_operator",
        "functools",
    ]
)
PLAIN_TYPES = frozenset(
    [
        "object",
        "complex",
        "bytearray",
        "slice",
        "range",
        "xrange",
        "bytes",
        "str",
        "tuple",
        "list",
        "int",
        "float",
        "bool",
        "type",
        "NoneType",
        "Ellipsis",
    ]
)
#: Functions that make a number, an array or an object again, by their modules.
MAKERS = {
    "copyreg": ("_reconstructor", "__newobj__"),
    "re": ("_compile",),
    "functools": ("partial",),
    "logging": ("getLogger",),
    "array": ("_array_reconstructor", "array"),
    "uuid": (),
}
NUMPY = (
    "numpy.core.multiarray",
    "numpy._core.multiarray",
    "numpy.core.numeric",
    "numpy._core.numeric",
    "numpy.random._pickle",
    "numpy.random.bit_generator",
    "numpy.ma.core",
)
CLASSES = frozenset(
    [
        "collections.deque",
        "datetime.date",
        "datetime.datetime",
        "datetime.time",
        "datetime.timedelta",
        "datetime.timezone",
        "time.struct_time",
        "itertools.count",
        "operator.itemgetter",
        "operator.attrgetter",
    ]
)
ARRAYS = frozenset(
    [
        "dtype",
        "ndarray",
        "matrix",
        "recarray",
        "record",
        "void",
        "bool_",
        "str_",
        "bytes_",
        "object_",
        "generic",
        "float16",
        "float32",
        "float64",
        "longdouble",
        "complex64",
        "complex128",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "intc",
        "intp",
        "uintp",
        "longlong",
        "ulonglong",
        "datetime64",
        "timedelta64",
        "bool",
    ]
)


def may_be_named(name: str) -> bool:
    """Whether a name may stand in a pickle at all."""
    root = name.partition(".")[0]
    if root == "builtins":
        last = name.rpartition(".")[2]
        return last in PLAIN_TYPES or last.endswith(("Error", "Exception"))
    return root in DATA or root not in sys.stdlib_module_names


def makes_object(name: str) -> bool:
    """Whether calling it makes an object, as far as its name tells.

    Example:
        >>> makes_object("argparse.Namespace"), makes_object("net.make_model")
        (True, False)
    """
    module, _, last = name.rpartition(".")
    if last[:1].isupper() or name in CLASSES or last in MAKERS.get(module, ()):
        return True
    if module == "builtins":
        return may_be_named(name)
    return module in NUMPY or (module == "numpy" and last in ARRAYS)
