"""A captured model: the ops that it runs, as a flat list without the Python around it.

`capture(model, x)` runs a model once and keeps what it did. The program is printed,
drawn, run by any backend, and written out in other languages. Whoever writes it walks
over its steps, which stand in the order in which they run:

    >>> from burnbook.backend import Numpy
    >>> from burnbook.nn import LinearConfig
    >>> from burnbook.tensor import Tensor
    >>> model = LinearConfig(3, 2).init(Numpy())
    >>> program = capture(lambda x: model.forward(x).relu(), Tensor.ones([4, 3]))
    >>> for value, array in program.constants.items():  # weights first
    ...     print(value.kind, value.name, array.shape)
    parameter weight (3, 2)
    parameter bias (2,)
    >>> for step in program.steps:
    ...     given = [getattr(v, "name", v) for v in step.inputs]
    ...     print(step.out.name, step.op.name, given, step.attrs, step.out.shape)
    linear linear ['x', 'weight', 'bias'] {} (n, 2)
    relu relu ['linear'] {} (n, 2)
    >>> [value.name for value in program.inputs], [v.name for v in program.outputs]
    (['x'], ['relu'])

What a writer has to know:

- A `Value` is an input, a constant or the result of one step. Values are compared as
  objects, and names are unique, so they may be names in what is written.
- An input of a step is a Value, a Python number, None, or a tuple of these, and
  `step.values` are just the Values. `step.attrs` is what the op was called with, so
  `{**step.op.attrs, **step.attrs}` has its defaults as well.
- A size, in a shape or an attribute, is an int or a `Dim`, which follows the batch size
  n: `dim.scale * n + dim.offset`. A float, in an attribute or an input, may be a power
  of that, times a factor. `dim(n)` is the number, which `resolved(step.attrs, n)` puts
  in its place.
- `step.outputs` may hold None (a gradient that nobody wants), and more than one Value
  where the op declares extras or several results. `program.uses[value]` says how often
  each is used; it is 0 for an extra that only gradients would see. An extra may be None
  in a run, where a kernel does without it.
- `program.outputs` may be inputs or constants, and the same value twice.

- Of a training step (`capture_training`) some inputs are a "state": `program.updates`
  pairs each with the output that takes its place, those of `program.outputs` behind
  `program.results`. Keys of random numbers are Values in `program.keys`; a number such
  as the learning rate is a `Formula` in attributes, of the names in `program.numbers`.

`program.run(*arrays)` is the definition that all of them are tested against.
"""

import sys

from burnbook.core.arguments import checks_arguments
from burnbook.core.formulas import Formula as Formula
from burnbook.program.capture import capture as capture
from burnbook.program.captured import Captured as Captured, captured as captured
from burnbook.program.compiled_training import CompiledTraining as CompiledTraining
from burnbook.program.compiler import (
    CompiledProgram as CompiledProgram,
    fusion as fusion,
)
from burnbook.program.program import Program as Program
from burnbook.program.sizes import (
    Dim as Dim,
    Key as Key,
    Shape as Shape,
    Size as Size,
    mapped as mapped,
    resolved as resolved,
    size_text as size_text,
)
from burnbook.program.training import (
    Training as Training,
    TrainingState as TrainingState,
    capture_training as capture_training,
)
from burnbook.program.values import Line as Line, Step as Step, Value as Value

checks_arguments(sys.modules[__name__], ["capture", "captured", "capture_training"])
