"""Building blocks · Tensor. Errors that say where, what, the facts, and a cure.

Every error of the library has the same four parts: a first line `where: what is wrong`
that is enough on its own, the facts one per line, and the cure when it is known. The
text is built only when something has failed, so it costs nothing before.
"""

from collections.abc import Iterable

from burnbook.trail import running_modules, running_shapes

Fact = str | tuple[str, str]


def explain(
    where: str, what: str, facts: Iterable[Fact] = (), cure: str | None = None
) -> str:
    """Lay out the four parts of an error: `where: what`, the facts, `try: cure`.

    Example:
        >>> print(explain("matmul", "3 ≠ 4", [("x", "Float [2, 3]")], "a transpose"))
        matmul: 3 ≠ 4
          x  Float [2, 3]
          try: a transpose
    """
    rows = list(facts)
    names = [len(row[0]) for row in rows if not isinstance(row, str)]
    width = max(names, default=0)
    lines = [f"{where}: {what}" if where else what]
    for row in rows:
        lines.append("  " + (row if isinstance(row, str) else _pair(row, width)))
    if cure:
        lines.append(f"  try: {cure}")
    return "\n".join(lines)


def _pair(row: tuple[str, str], width: int) -> str:
    return f"{row[0]:<{width}}  {row[1]}"


class BurnbookError(Exception):
    """The base of every error that the library explains.

    Made while a module runs, it says which one: `path` is "Model.conv1".
    """

    draws_shapes = False

    def __init__(
        self,
        where: str,
        what: str = "",
        facts: Iterable[Fact] = (),
        cure: str | None = None,
    ) -> None:
        self.where = where
        self.what = what
        self.facts = list(facts)
        self.cure = cure
        self.path = running_modules()
        if self.path and self.draws_shapes:
            self.facts += running_shapes()
        super().__init__(where, what, self.facts, cure)

    def __str__(self) -> str:
        where = f"{self.path}: {self.where}" if self.path else self.where
        return explain(where, self.what, self.facts, self.cure)


class ShapeError(BurnbookError, ValueError):
    """Sizes or ranks do not fit; while modules run, the shapes in each are shown."""

    draws_shapes = True


class DimError(ShapeError, IndexError):
    """A dim or an index lies outside the tensor."""


class KindError(BurnbookError, TypeError):
    """Float, Int and Bool are mixed."""


class DivisionError(BurnbookError, ZeroDivisionError):
    """A whole number is divided by zero."""


class BackendError(BurnbookError, TypeError):
    """Tensors live on different backends, or the backend cannot do it."""


class NotFiniteError(BurnbookError, ArithmeticError):
    """NaN or infinity came out of an operation; only `Checked` looks for them."""


class GraphError(BurnbookError, RuntimeError):
    """The graph behind a tensor cannot give the gradient asked for."""


class DataError(BurnbookError, ValueError):
    """A dataset, a loader or a download is not as it should be."""


class TrainingError(BurnbookError, RuntimeError):
    """Training cannot go on."""


class ConfigError(BurnbookError, ValueError):
    """A config has an unknown, missing or impossible field."""


class RecordError(BurnbookError, ValueError):
    """A record cannot be read, or does not match the module."""


class ImportFailed(BurnbookError, ValueError):
    """A foreign file uses something that cannot be imported."""
