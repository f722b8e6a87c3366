"""What the source of an imported model calls: the operators of ONNX as functions."""

from burnbook.importers.onnx.operators import (
    convolution,
    elementwise,
    indexing,
    joining,
    losses,
    microsoft,
    ml,
    norms,
    pooling,
    products,
    quantized,
    random,
    recurrent,
    reductions,
    resampling,
    sequences,
    shapes,
    signal,
    sorting,
    svm,
    texts,
    training,
    types,
)
from burnbook.importers.onnx.operators.constants import (
    array as array,
    const as const,
    first_state as first_state,
    from_tensors as from_tensors,
    frozen as frozen,
    indices as indices,
    last_state as last_state,
    of_type as of_type,
    scalar as scalar,
    tensor as tensor,
    tied as tied,
    to_tensors as to_tensors,
    weight as weight,
    whole as whole,
)
from burnbook.importers.onnx.operators.control import (
    if_ as if_,
    loop_ as loop_,
    scan_ as scan_,
    sequence_map_ as sequence_map_,
)
from burnbook.importers.onnx.operators.registry import (
    OPERATORS,
    add_operator as add_operator,
    added as added,
)

#: The operators by family; importing them has added them to OPERATORS.
FAMILIES = (
    *(convolution, elementwise, indexing, joining, losses, ml, norms),
    *(pooling, products, quantized, random, recurrent, reductions, resampling),
    *(sequences, shapes, signal, sorting, svm, texts, training, types),
    *microsoft.FAMILIES,
)

for _made in OPERATORS.values():
    globals()[_made.__name__] = _made
