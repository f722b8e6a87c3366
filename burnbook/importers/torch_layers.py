"""What PyTorch calls the parameters of a layer, and how it lays them out: one table.

    layer here                 there
    Linear                     weight [d_output, d_input], turned
    norms                      gamma, beta                -> weight, bias
    PRelu                      alpha                      -> weight
    Lstm, Gru, Rnn, Bi…        a Linear for each gate     -> blocks of weight_ih_l0, …
    MultiHeadAttention         query, key, value, output  -> blocks of in_proj, out_proj
    TransformerEncoder, …      mha, pwff.linear_inner, …  -> self_attn, linear1, …

`spots` walks a module and says for each parameter where a file may have it. Stores
read by it, exporters write by it (`pytorch_arrays`), so both directions agree.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from burnbook.core.converters import ANYTHING, TypeSpec
from burnbook.core.errors import RecordError
from burnbook.importers.key_remap import numbers_below
from burnbook.importers.lazy_array import LazyArray, joined, zeros_like
from burnbook.module.param import Param, TransposedParam
from burnbook.module.reparameterization import Reparameterized
from burnbook.module.tree import (
    MODULES,
    Tree,
    children,
    field_specs,
    is_constant,
    named_arm,
    places,
    spelled,
)
from burnbook.nn import (
    BatchNorm,
    BiGru,
    BiLstm,
    BiRnn,
    GroupNorm,
    Gru,
    InstanceNorm,
    LayerNorm,
    Linear,
    Lstm,
    MultiHeadAttention,
    PRelu,
    RmsNorm,
    Rnn,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)
from burnbook.tensor.data import TensorData


class Source(NamedTuple):
    """Where a parameter is in a file: an array, or one of `of` equal blocks of it."""

    name: str
    turned: bool = False
    part: int = 0
    of: int = 1


class Row(NamedTuple):
    """One line of the table: a path inside a layer, and what PyTorch has there."""

    ours: str
    theirs: Source


Rows = list[Row]
Renames = list[tuple[str, str]]


def _linear(layer: Linear, number: int) -> Rows:
    turned = not isinstance(layer.weight, TransposedParam)
    return [Row("weight", Source("weight", turned)), Row("bias", Source("bias"))]


def _norm(layer: object, number: int) -> Rows:
    return [Row("gamma", Source("weight")), Row("beta", Source("bias"))]


def _prelu(layer: object, number: int) -> Rows:
    return [Row("alpha", Source("weight"))]


GATES: dict[type[Tree], tuple[str, ...]] = {
    Lstm: ("input_gate", "forget_gate", "cell_gate", "output_gate"),
    Gru: ("reset_gate", "update_gate", "new_gate"),
    Rnn: ("gate",),
}
DIRECTIONS = (("forward.", ""), ("reverse.", "_reverse"))
BOTH_WAYS = (BiLstm, BiGru, BiRnn)


def _recurrent(layer: Any, number: int) -> Rows:
    if not isinstance(layer, BOTH_WAYS):
        return _gates(layer, "", f"_l{number}")
    rows: Rows = []
    for inside, suffix in DIRECTIONS:
        part = layer.forward_ if inside == "forward." else layer.reverse
        rows += _gates(part, inside, f"_l{number}{suffix}")
    return rows


def _gates(layer: Any, inside: str, suffix: str) -> Rows:
    names = next(names for cls, names in GATES.items() if isinstance(layer, cls))
    rows: Rows = []
    for part, name in enumerate(names):
        for side, short in (("input_transform", "ih"), ("hidden_transform", "hh")):
            at, ending, count = (
                f"{inside}{name}.{side}.",
                f"_{short}{suffix}",
                len(names),
            )
            weight = Source(f"weight{ending}", True, part, count)
            bias = Source(f"bias{ending}", False, part, count)
            rows += [Row(f"{at}weight", weight), Row(f"{at}bias", bias)]
    return rows


def _attention(layer: object, number: int) -> Rows:
    rows: Rows = []
    for part, name in enumerate(("query", "key", "value")):
        rows += [
            Row(f"{name}.weight", Source("in_proj_weight", True, part, 3)),
            Row(f"{name}.bias", Source("in_proj_bias", False, part, 3)),
            Row(f"{name}.weight", Source(f"{name[0]}_proj_weight", True)),
        ]
    out = Row("output.weight", Source("out_proj.weight", True))
    return [*rows, out, Row("output.bias", Source("out_proj.bias"))]


#: The parameters of a layer, by its class.
ROWS: list[tuple[type[Any] | tuple[type[Any], ...], Callable[[Any, int], Rows]]] = [
    (Linear, _linear),
    ((BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RmsNorm), _norm),
    (PRelu, _prelu),
    ((*GATES, *BOTH_WAYS), _recurrent),
    (MultiHeadAttention, _attention),
]
FEED_FORWARD = [("pwff.linear_inner", "linear1"), ("pwff.linear_outer", "linear2")]


def _encoder_layer(layer: TransformerEncoderLayer) -> Renames:
    """PyTorch numbers norms in the order of use, Burn by what they belong to."""
    order = "21" if layer.norm_first else "12"
    norms = [(f"norm_{n}", f"norm{i}") for i, n in enumerate(order, 1)]
    return [("mha", "self_attn"), *FEED_FORWARD, *norms]


def _decoder_layer(layer: TransformerDecoderLayer) -> Renames:
    order = "312" if layer.norm_first else "123"
    norms = [(f"norm_{n}", f"norm{i}") for i, n in enumerate(order, 1)]
    return [("cross_attn", "multihead_attn"), *FEED_FORWARD, *norms]


#: What parts of a layer are called, by its class.
RENAMES: list[tuple[type[Any], Callable[[Any], Renames]]] = [
    (TransformerEncoderLayer, _encoder_layer),
    (TransformerDecoderLayer, _decoder_layer),
]


@dataclass(frozen=True, repr=False)
class Spot:
    """One parameter of a module, and where a file may have it.

    path: as in `named_params`: "layers.0.weight".
    keys: the way through a record, with the names of variants.
    containers: the classes around it: "Struct:Net.Struct:Linear".
    layer: the module that it belongs to.
    own: where a file in Burn's names and layout has it, the likeliest place first.
    theirs: where one in PyTorch's has it.
    """

    path: str
    keys: tuple[str, ...]
    containers: str
    layer: object
    param: Param
    own: tuple[Source, ...]
    theirs: tuple[Source, ...]

    @property
    def layer_type(self) -> str:
        """The name of the class that the parameter belongs to."""
        return type(self.layer).__name__

    def __repr__(self) -> str:
        return f"Spot({self.path} of {self.layer_type})"


class Place(NamedTuple):
    """A name that a part of a module may have; `number` is that of a stacked layer."""

    name: str
    number: int = 0

    def inside(self, name: str) -> Place:
        """The name of a part of that part."""
        return Place(f"{self.name}.{name}" if self.name else name)


@dataclass
class Around:
    """What is known about a part of a module when the walk comes to it."""

    path: str
    keys: tuple[str, ...]
    containers: tuple[str, ...]
    own: list[Place]
    theirs: list[Place]
    layer: object = None
    rows: dict[str, list[Source]] = field(default_factory=dict)
    renames: dict[str, list[Place]] = field(default_factory=dict)


def spots(
    module: object,
    names: Iterable[str] = (),
    *,
    contiguous: bool = True,
    skip_variants: bool = True,
) -> Iterator[Spot]:
    """Every parameter of a module, depth first, and where a file may have it.

    names: those of the file; where lists of the module are numbered with gaps there,
        and `contiguous` holds, the n-th part of a list is the n-th number.
    skip_variants: whether names leave out which class of a union a part is of.
    """
    walk = _Walk(numbers_below(names) if contiguous else {}, skip_variants)
    start = Around("", (), (), [Place("")], [Place("")])
    return walk.part(module, ANYTHING, start)


class _Walk:
    def __init__(self, numbers: dict[str, list[int]], skip_variants: bool) -> None:
        self.numbers, self.skip_variants = numbers, skip_variants

    def part(self, value: object, spec: TypeSpec, at: Around) -> Iterator[Spot]:
        """The parameters of a part."""
        if (variant := named_arm(value, spec)) is not None:
            at = self.chosen(at, variant[0], spec)
            spec = variant[1]
        if isinstance(value, Reparameterized):
            yield self.spot(value.stored, at, (*at.keys, "base"))
            inner = self.below(at, value.attached.NAME)
            yield from self.part(value.attached, ANYTHING, inner)
        elif isinstance(value, Param):
            yield self.spot(value, at, at.keys)
        elif isinstance(value, Tree) and not is_constant(value):
            yield from self.module(value, spec, at)
        elif isinstance(value, (list, tuple)):
            yield from self.several(value, spec, at)
        elif isinstance(value, dict):
            for key, held in value.items():
                yield from self.part(held, spec.item, self.below(at, str(key)))

    def spot(self, param: Param, at: Around, keys: tuple[str, ...]) -> Spot:
        """A parameter: by the rows of the layers around it, or by its own name."""
        own = tuple(Source(place.name) for place in at.own)
        plain = tuple(Source(place.name) for place in at.theirs)
        theirs = tuple(at.rows.get(at.path, ()))
        known = {source.name for source in theirs}
        theirs += tuple(source for source in plain if source.name not in known)
        containers = ".".join(at.containers)
        return Spot(at.path, keys, containers, at.layer, param, own, theirs)

    def module(self, value: Tree, spec: TypeSpec, at: Around) -> Iterator[Spot]:
        """The parameters of a module, whose class may have rows in the table."""
        while spec.choice and (arm := spec.arm(type(value))) is not None:
            at = self.chosen(at, spec.variant(type(value)), spec)
            spec = arm
        at.containers += (f"Struct:{type(value).__name__}",)
        self.look_up(value, at)
        if value.spread:
            for name, held in getattr(value, value.spread).items():
                yield from self.part(held, ANYTHING, self.below(at, name, value))
            return
        for name, inner in field_specs(type(value)).items():
            held = getattr(value, name)
            yield from self.part(held, inner, self.below(at, spelled(name), value))

    def look_up(self, value: Tree, at: Around) -> None:
        """Add what the table says about this layer."""
        path = f"{at.path}." if at.path else ""
        for cls, rows in ROWS:
            if isinstance(value, cls):
                for row in (
                    row for place in at.theirs for row in _at(rows, value, place)
                ):
                    at.rows.setdefault(path + row.ours, []).append(row.theirs)
        for kind, renames in RENAMES:
            if isinstance(value, kind):
                for ours, theirs in renames(value):
                    found = [place.inside(theirs) for place in at.theirs]
                    at.renames[path + ours] = found

    def chosen(self, at: Around, name: str, spec: TypeSpec) -> Around:
        """The part as the variant of a union."""
        kinds = " | ".join(arm.text() for arm in spec.meant)
        made = Around(**vars(at))
        made.keys, made.containers = (*at.keys, name), (*at.containers, f"Enum:{kinds}")
        if not self.skip_variants:
            made.path = f"{at.path}.{name}"
            made.own = [place.inside(name) for place in at.own]
            made.theirs = [place.inside(name) for place in at.theirs]
        return made

    def below(self, at: Around, name: str, layer: object = None) -> Around:
        """What is known about a part of a part."""
        path = f"{at.path}.{name}" if at.path else name
        theirs = [place.inside(name) for place in at.theirs]
        renamed = at.renames.get(path, [])
        theirs = [*renamed, *(place for place in theirs if place not in renamed)]
        own = [place.inside(name) for place in at.own]
        layer, rows = layer or at.layer, at.rows
        keys, around = (*at.keys, name), at.containers
        return Around(path, keys, around, own, theirs, layer, rows, at.renames)

    def several(self, value: Any, spec: TypeSpec, at: Around) -> Iterator[Spot]:
        """The parameters of the parts of a list, which a file may number with gaps."""
        with_params = [i for i, held in enumerate(value) if _may_learn(held)]
        stacked = is_stack(value)
        at.containers += ("Vec" if isinstance(value, list) else "Array",)
        for i, inner in zip(range(len(value)), places(spec, len(value)), strict=True):
            if i not in with_params:
                continue
            below, nth = self.below(at, str(i)), with_params.index(i)
            below.own = [self.numbered(place, i, nth) for place in at.own]
            below.theirs = [self.numbered(place, i, nth) for place in at.theirs]
            if _is_recurrent(value[i]):
                more = [Place(place.name, i) for place in at.theirs]
                below.theirs = more + below.theirs if stacked else below.theirs + more
            yield from self.part(value[i], inner, below)

    def numbered(self, place: Place, i: int, nth: int) -> Place:
        """The name of a part of a list: by the n-th number that the file has there."""
        found = self.numbers.get(place.name)
        if found is None or nth >= len(found):
            return place.inside(str(i))
        return place.inside(str(found[nth]))


def _at(rows: Callable[[Any, int], Rows], layer: Tree, place: Place) -> Rows:
    """The rows of a layer with the whole names that they have at a place."""
    inside = Place(place.name)
    return [
        Row(ours, theirs._replace(name=inside.inside(theirs.name).name))
        for ours, theirs in rows(layer, place.number)
    ]


def _may_learn(held: object) -> bool:
    return held is not None and not (isinstance(held, Tree) and is_constant(held))


def _is_recurrent(layer: object) -> bool:
    return isinstance(layer, (*GATES, *BOTH_WAYS))


def is_stack(layers: Any) -> bool:
    """Whether layers can be one recurrent layer of PyTorch with several `num_layers`.

    They are of one class and width, and each reads what the one before gives.
    """
    if len(layers) < 2 or not all(map(_is_recurrent, layers)):
        return False
    if len({(type(layer), layer.d_hidden) for layer in layers}) > 1:
        return False
    ways = 2 if isinstance(layers[0], BOTH_WAYS) else 1
    widths = [_first_weight(layer).shape[0] for layer in layers[1:]]
    return all(width == ways * layers[0].d_hidden for width in widths)


def _first_weight(layer: Any) -> Param:
    while not isinstance(layer, Linear):
        layer = next(held for _, held in children(layer) if isinstance(held, Tree))
    return layer.weight


def pytorch_arrays(
    module: object,
    adapt: Callable[[LazyArray, Spot], LazyArray] | None = None,
    chosen: Callable[[Spot], bool] | None = None,
    bare: Container[str] = (),
) -> dict[str, LazyArray]:
    """The state dict of PyTorch's twin of a module: its names and its layout.

    adapt: changes each parameter on the way, for example to half precision.
    chosen: says which parameters to take; by default all.
    bare: names of those that are no layer's there, and so are written as they lie here.

    Example:
        >>> from burnbook.backend import Numpy
        >>> from burnbook.nn import LstmConfig
        >>> arrays = pytorch_arrays(LstmConfig(2, 3, True).init(Numpy()))
        >>> list(arrays.values())[:2]
        [LazyArray(weight_ih_l0: f32 [12, 2]), LazyArray(bias_ih_l0: f32 [12])]

    Raises:
        RecordError: PyTorch has no such layer: an Lstm with input_forget.
    """
    found: dict[str, dict[int, LazyArray]] = {}
    counts: dict[str, int] = {}
    counters: dict[str, LazyArray] = {}
    _check_twins(module)
    taken = {s.theirs[0].name for s in spots(module) if chosen is None or chosen(s)}
    for spot in spots(module):
        source = spot.theirs[0]
        if source.name not in taken:
            continue
        array = LazyArray.of(source.name, spot.param.to_saved().dequantize())
        array = array if adapt is None else adapt(array, spot)
        found.setdefault(source.name, {})[source.part] = (
            array.turned() if source.turned and source.name not in bare else array
        )
        counts[source.name] = source.of
        if isinstance(spot.layer, BatchNorm):
            name = source.name.rpartition(".")[0]
            name = f"{name}.num_batches_tracked".lstrip(".")
            counters[name] = LazyArray.of(name, TensorData(0, dtype="i64"))
    arrays: dict[str, LazyArray] = {}
    for name, parts in found.items():
        absent = zeros_like(next(iter(parts.values())))
        every = [parts.get(i, absent) for i in range(counts[name])]
        arrays[name] = joined(name, every)
    return arrays | counters


def _check_twins(module: object) -> None:
    for path, layer in MODULES.nodes(module):
        if isinstance(layer, Lstm) and layer.input_forget:
            what = f"{'.'.join(path) or 'Lstm'}: PyTorch's LSTM has no input_forget"
            raise RecordError("to PyTorch", what, cure="with_input_forget(False)")
