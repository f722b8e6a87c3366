"""Einstein's sums: products of tensors whose dims have letters.

An equation says which dims belong together; every letter that is not in the result is
summed over. It runs as permute, reshape, sum and batched matmul, so gradients come from
those. Of three tensors and more, two are taken at a time, in the cheapest order.
"""

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np

from burnbook.core.arrays import Shape
from burnbook.core.dtypes import Bool, Float
from burnbook.core.errors import ArgumentError, BackendError, KindError, ShapeError
from burnbook.ops.shape import slice_
from burnbook.tensor.facts import facts_of
from burnbook.tensor.methods import Methods, apply
from burnbook.tensor.reductions import Reductions

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
FEW = 5  # tensors, of which NumPy tries every order
Labels = tuple[
    str, ...
]  # a letter per dim; those of `...` are "0", "1" … from the right


class Terms(NamedTuple):
    """An equation, read for tensors of certain ranks."""

    inputs: tuple[Labels, ...]
    output: Labels


class Labelled(NamedTuple):
    """A tensor with a label for each of its dims; without dims its shape is [1]."""

    tensor: Any
    labels: Labels

    def size(self, label: str) -> int:
        """The size of the dim with a label."""
        return int(self.tensor.value.shape[self.labels.index(label)])

    def sizes(self, labels: Sequence[str]) -> Shape:
        """The sizes of some dims."""
        return tuple(self.size(label) for label in labels)

    def only(self, kept: Sequence[str]) -> "Labelled":
        """Summed over every dim whose label is not kept."""
        gone = [d for d, label in enumerate(self.labels) if label not in kept]
        if not gone:
            return self
        rest = tuple(label for label in self.labels if label in kept)
        sizes = self.sizes(rest)
        return Labelled(self.tensor.sum_dims(gone).reshape_to(sizes or (1,)), rest)

    def without(self, labels: Sequence[str]) -> "Labelled":
        """Without dims of size 1, which stretch to what the other tensor has there."""
        if not labels:
            return self
        rest = tuple(label for label in self.labels if label not in labels)
        return Labelled(self.tensor.reshape_to(self.sizes(rest) or (1,)), rest)

    def ordered(self, labels: Sequence[str]) -> Any:
        """The tensor with its dims in another order."""
        axes = [self.labels.index(label) for label in labels]
        return self.tensor if axes == sorted(axes) else self.tensor.permute(axes)


class Contraction(Reductions):
    """Sums of products, by an equation."""

    __slots__ = ()

    @classmethod
    def einsum(cls, equation: str, *tensors: Self) -> Self:
        """Sum products of tensors as an equation says: "ij,jk->ik" is a matmul.

        Each tensor has a letter per dim, between commas. Dims with one letter have one
        size, or 1, which stretches. Letters that the result does not name are summed
        over; a letter twice in one tensor takes its diagonal; `...` stands for all
        other dims. Without "->" the result has the letters that stand there once, in
        the order of the alphabet, after the dims of `...`. A result without letters
        has shape [1]. Float or Int; of three tensors and more the order is opt_einsum's
        where that is installed, else NumPy's.

        Example:
            >>> from burnbook.tensor import Tensor
            >>> x = Tensor.from_ints([[1, 2], [3, 4]])
            >>> Tensor.einsum("ij,kj->ik", x, x).into_data().to_list()
            [[5, 11], [11, 25]]
            >>> Tensor.einsum("ii->", x).into_scalar()
            5
        """
        _check(equation, tensors)
        shapes = tuple(tuple(t.value.shape) for t in tensors)
        terms = read(equation, tuple(map(len, shapes)))
        _check_sizes(terms, shapes, tensors)
        parts = [
            _diagonals(Labelled(t, labels))
            for t, labels in zip(tensors, terms.inputs, strict=True)
        ]
        for step in _order(terms, shapes):
            taken = [parts[i] for i in step]
            rest = [part for i, part in enumerate(parts) if i not in step]
            kept = {*terms.output, *[label for part in rest for label in part.labels]}
            one = taken[0]
            for other in taken[1:]:
                held = {*kept, *[label for t in taken[2:] for label in t.labels]}
                one = _product(one, other, [*held])
            parts = [*rest, one]
        (last,) = parts
        return last.only(terms.output).ordered(terms.output)


@lru_cache(maxsize=1024)
def read(equation: str, ranks: tuple[int, ...]) -> Terms:
    """The labels of all dims: of the tensors, by their ranks, and of the result.

    Example:
        >>> read("...i,ij", (3, 2))
        Terms(inputs=(('1', '0', 'i'), ('i', 'j')), output=('1', '0', 'j'))
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(ranks):
        given = f"{len(texts)} tensor{'s' * (len(texts) != 1)}"
        what = f"{equation!r} has letters for {given}, and {len(ranks)} came"
        raise ShapeError("einsum", what, cure="letters for each tensor: 'ij,jk->ik'")
    inputs = tuple(
        _labels(equation, i, text, rank)
        for i, (text, rank) in enumerate(zip(texts, ranks, strict=True))
    )
    found = [label for labels in inputs for label in labels]
    dots = sorted({label for label in found if label.isdigit()}, key=int, reverse=True)
    if not arrow:
        once = sorted({a for a in found if found.count(a) == 1 and not a.isdigit()})
        return Terms(inputs, (*dots, *once))
    letters = _letters(equation, right)
    output = [part for a in letters for part in (dots if a == "." else [a])]
    for a in output:
        if output.count(a) > 1:
            what = f"{equation!r} names {a} twice in the result"
            raise ShapeError("einsum", what, cure="each letter once behind ->")
        if a not in found:
            what = f"{equation!r} has {a} in the result and in no tensor"
            raise ShapeError("einsum", what, cure=f"{a} in front of ->, or not at all")
    return Terms(inputs, tuple(output))


def _letters(equation: str, text: str) -> str:
    """The letters of one tensor, with "." for `...`."""
    odd = [a for a in text.replace("...", "") if a not in LETTERS]
    short = text.replace("...", ".")
    if odd or short.count(".") > 1:
        told = f"{odd[0]!r}, which is no letter" if odd else "`...` twice"
        what = f"{equation!r} has {told}"
        if odd and odd[0] in "->":
            what = f"{equation!r} has more than one ->"
        cure = "letters, `...` once for a tensor, commas and one ->: '...ij,jk->...ik'"
        raise ShapeError("einsum", what, cure=cure)
    return short


def _labels(equation: str, i: int, text: str, rank: int) -> Labels:
    """A label for each dim of a tensor."""
    letters = _letters(equation, text)
    named = len(letters.replace(".", ""))
    more = rank - named
    if more < 0 or (more and "." not in letters):
        what = f"{text!r} names {named} dims, and tensor {i} has rank {rank}"
        if text == "":
            what = f"nothing stands for tensor {i}, which has rank {rank}"
        cure = "a letter for each dim, or `...` for those that have none"
        raise ShapeError("einsum", what, [("equation", equation)], cure)
    others = [str(d) for d in range(more - 1, -1, -1)]
    return tuple(part for a in letters for part in (others if a == "." else [a]))


def _check(equation: Any, tensors: tuple[Any, ...]) -> None:
    """Refuse what is no equation, and what is no tensor of numbers."""
    cure = 'Tensor.einsum("ij,jk->ik", x, y)'
    if not isinstance(equation, str):
        what = f"the equation is {type(equation).__name__}, not a text"
        raise ArgumentError("einsum", what, cure=cure)
    if not tensors:
        raise ArgumentError("einsum", "no tensor follows the equation", cure=cure)
    if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
        what = "the tensors stand in a list"
        raise ArgumentError("einsum", what, cure="Tensor.einsum(equation, *tensors)")
    for i, t in enumerate(tensors):
        if not isinstance(t, Methods):
            what = f"tensor {i} is {type(t).__name__}, not a tensor"
            raise KindError("einsum", what, cure="Tensor.from_data(…, device)")
        if t.backend is not tensors[0].backend:
            what = "all tensors must live on one backend"
            cure = f"to_device({tensors[0].backend!r}) of tensor {i}"
            raise BackendError("einsum", what, _facts(tensors), cure)
    kinds = {t.kind for t in tensors}
    if Bool in kinds or len(kinds) > 1:
        what = "takes Float tensors, or Int tensors"
        odd = next(i for i, t in enumerate(tensors) if t.kind is not Float)
        raise KindError("einsum", what, _facts(tensors), f"float() of tensor {odd}")


def _check_sizes(
    terms: Terms, shapes: tuple[Shape, ...], tensors: tuple[Any, ...]
) -> None:
    """Dims with one label have one size, or 1; in one tensor they are equal."""
    known: dict[str, tuple[int, int]] = {}
    for i, (labels, shape) in enumerate(zip(terms.inputs, shapes, strict=True)):
        own: dict[str, int] = {}
        for label, size in zip(labels, shape, strict=True):
            other, at = known.get(label, (1, i))
            if own.setdefault(label, size) != size:
                raise _other_size(label, (own[label], i), (size, i), tensors)
            if 1 not in (size, other) and size != other:
                raise _other_size(label, (other, at), (size, i), tensors)
            if size != 1:
                known[label] = size, i


def _other_size(
    label: str, one: tuple[int, int], two: tuple[int, int], tensors: tuple[Any, ...]
) -> ShapeError:
    """The error for a letter that has two sizes, each in a tensor."""
    name = "a dim of `...`" if label.isdigit() else label
    what = f"{name} is {one[0]} in tensor {one[1]} and {two[0]} in tensor {two[1]}"
    cure = "another letter for one of them, or a transposed tensor"
    return ShapeError("einsum", what, _facts(tensors), cure)


def _facts(tensors: tuple[Any, ...]) -> list[tuple[str, str]]:
    return facts_of(**{f"tensor {i}": t for i, t in enumerate(tensors)})


def _order(terms: Terms, shapes: tuple[Shape, ...]) -> Sequence[tuple[int, ...]]:
    """Which tensors are taken together, one step after the other.

    The places are those of a list that each step takes tensors from, and puts the
    result behind.
    """
    if len(shapes) < 3:
        return [tuple(range(len(shapes)))]
    return _path(terms, shapes)


@lru_cache(maxsize=1024)
def _path(terms: Terms, shapes: tuple[Shape, ...]) -> Sequence[tuple[int, ...]]:
    """The cheapest order for three tensors and more."""
    every = sorted({label for labels in terms.inputs for label in labels})
    names = {label: chr(0x4E00 + i) for i, label in enumerate(every)}
    if len(every) <= len(LETTERS):
        names = dict(zip(every, LETTERS, strict=False))
    texts = ["".join(names[a] for a in labels) for labels in terms.inputs]
    equation = f"{','.join(texts)}->{''.join(names[a] for a in terms.output)}"
    try:
        found = import_module("opt_einsum").contract_path(
            equation, *shapes, shapes=True
        )
        return found[0]
    except ModuleNotFoundError:
        pass
    if len(every) > len(LETTERS):  # NumPy knows no more letters
        last = len(shapes) - 1
        return [(0, 1), *[(0, last - k) for k in range(1, last)]]
    empty = [np.broadcast_to(0.0, shape) for shape in shapes]
    way = "optimal" if len(shapes) <= FEW else "greedy"
    path = np.einsum_path(equation, *empty, optimize=way)[0]
    return [tuple(step) for step in path[1:]]


def _diagonals(part: Labelled) -> Labelled:
    """Where two dims have one label: the elements whose indices are equal there."""
    for label in dict.fromkeys(part.labels):
        while part.labels.count(label) > 1:
            part = _diagonal(part, label)
    return part


def _diagonal(part: Labelled, label: str) -> Labelled:
    first = part.labels.index(label)
    second = part.labels.index(label, first + 1)
    size = part.size(label)
    rest = [d for d in range(len(part.labels)) if d not in (first, second)]
    shape = tuple(part.tensor.value.shape[d] for d in rest)
    flat = part.tensor.permute([*rest, first, second]).reshape_to((*shape, size * size))
    places = slice(0, size * (size + 1), size + 1)
    out = apply(slice_, flat, index=(*[slice(None)] * len(rest), places))
    return Labelled(out, (*[part.labels[d] for d in rest], label))


def _product(x: Labelled, y: Labelled, kept: Sequence[str]) -> Labelled:
    """Two tensors multiplied, and summed over every label that is not kept."""
    shared = [a for a in x.labels if a in y.labels and x.size(a) != y.size(a)]
    x = x.without([a for a in shared if x.size(a) == 1])
    y = y.without([a for a in shared if a in x.labels])
    x = x.only([*kept, *y.labels])
    y = y.only([*kept, *x.labels])
    both = [a for a in x.labels if a in y.labels]
    batch = [a for a in both if a in kept]
    summed = [a for a in both if a not in kept]
    left = [a for a in x.labels if a not in both]
    right = [a for a in y.labels if a not in both]
    sizes = x.sizes(batch), x.sizes(left), y.sizes(right)
    labels = (*batch, *left, *right)
    shape = sum(sizes, ())
    if not summed:
        ones = [(1,) * len(side) for side in sizes]
        one = x.ordered([*batch, *left]).reshape_to(
            (*sizes[0], *sizes[1], *ones[2]) or (1,)
        )
        two = y.ordered([*batch, *right]).reshape_to(
            (*sizes[0], *ones[1], *sizes[2]) or (1,)
        )
        return Labelled(one * two, labels)
    b, m, n = (prod(side) for side in sizes)
    k = prod(x.sizes(summed))
    one = x.ordered([*batch, *left, *summed]).reshape_to((b, m, k))
    two = y.ordered([*batch, *summed, *right]).reshape_to((b, k, n))
    return Labelled((one @ two).reshape_to(shape or (1,)), labels)
