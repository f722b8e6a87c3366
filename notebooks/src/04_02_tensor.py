# %% [markdown] tags=["goals"]
# # 4.2 · Tensor
#
# After this chapter you can
#
# - say what rank, kind and shape are, and get data into a tensor and out again;
# - find the function you need among the nearly two hundred of the book's tables;
# - print a tensor the way you want it, and say how close two tensors are.
#
# About 45 minutes. You should have read [chapter 2](02_getting_started.ipynb); what
# computes is the subject of [chapter 4.1](04_01_backend.ipynb).

# %% tags=["setup", "rust:setup"]
from dataclasses import dataclass

import numpy as np

import burnbook
from burnbook import ops
from burnbook.tensor import activation
from burnbook.backend import Numpy
from burnbook.tensor.closeness import check_closeness
from burnbook.tensor.display import PrintOptions, array_text, set_print_options
from burnbook.reference.table import rows
from burnbook.tensor import (
    Bool,
    Distribution,
    ElementConversion,
    Float,
    Int,
    Tensor,
    TensorData,
)
from burnbook_widgets import ClosenessView, TensorView
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Lines

burnbook.seed(0)

# %% [markdown]
# The chapters on building blocks import every name from its own module, as the book
# does, and use no prelude.
#
# ## Try it
#
# Three students, two tests. How far is each mark from the mean of its test? `show` is
# a helper of this page: only the elements, on one line.


# %% tags=["run-me", "cell:from_floats", "rust:from_floats"]
def show(digits=None, **tensors):
    for name, tensor in tensors.items():
        text = array_text(np.asarray(tensor), tensor.dtype, digits)
        print(f"{name:<16} {' '.join(text.split())}")


device = Numpy()
marks = Tensor[2].from_floats([[6, 9], [8, 3], [10, 6]], device)
show(mean=marks.mean_dim(0), apart=marks - marks.mean_dim(0))

# %% [markdown]
# The mean along dim 0 has shape [1, 2]: a reduction *keeps* its dim, with size 1. So
# [1, 2] can be subtracted from [3, 2] directly.
#
# ## By hand
#
# A tensor is one long row of numbers, and a shape that says how to index it. With $n$
# columns,
#
# $$x_{ij} = \text{flat}_{\,i\,n + j}$$


# %% tags=["run-me"]
def pick(flat, columns, i, j):
    return flat[i * columns + j]


flat = [6.0, 9.0, 8.0, 3.0, 10.0, 6.0]
by_hand = [[pick(flat, 2, i, j) for j in range(2)] for i in range(3)]
turned = [[pick(flat, 2, j, i) for j in range(3)] for i in range(2)]
print(by_hand, turned, sep="\n")

# %% [markdown]
# Reshaping changes only the shape; transposing changes the order of indexing. Neither has
# to move the numbers.
#
# ## In burnbook

# %% tags=["run-me", "cell:reshape", "rust:reshape"]
row = Tensor[1].from_floats(flat, device)
same(by_hand, row.reshape([3, 2]))
same(turned, row.reshape([3, 2]).transpose())

# %% [markdown] tags=["cell:types"]
# ## Rank and kind
#
# `Tensor[2]` states a *rank*, the number of dims, and a *kind* of element. It does not
# say how large a dim is: that follows from the data. There are three kinds, and the
# backend decides how many bits each of them has.
#
# | here | means |
# |---|---|
# | `Tensor[2]`, `Tensor[2, Float]` | rank 2, floating-point numbers |
# | `Tensor[1, Int]` | rank 1, integers |
# | `Tensor[1, Bool]` | rank 1, true or false |
# | `Tensor[device, 2]` | rank 2, on this backend and no other |

# %% tags=["run-me"]
print(Tensor[2], Tensor[2, Float], Tensor[1, Int], Tensor[device, 1, Bool])
print(isinstance(marks, Tensor[2]), isinstance(marks, Tensor[2, Int]))

# %% [markdown]
# Five numbers in a row are a tensor of rank 1 and shape [5]. Rank 5 would be five dims,
# and that is checked:

# %% tags=["run-me", "rust:rank"]
floats = [1.0, 2.0, 3.0, 4.0, 5.0]
tensor_1 = Tensor[1].from_floats(floats, device)
print(repr(tensor_1))

# %% tags=["raises-exception", "cell:rank-not-shape"]
Tensor[5].from_floats(floats, device)

# %% [markdown]
# ## Data in
#
# All data enters through `from_data`, which takes a `TensorData`: elements, shape and
# element type, not yet on any device. Lists, ranges and NumPy arrays are converted to
# one. `from_floats` and `from_ints` also fix the kind.

# %% tags=["run-me", "cell:from-data", "rust:from-data"]
array = [1, 2, 3, 4, 5, 6]
part = TensorData(array[0:3])
tensor_1 = Tensor[1].from_data([1.0, 2.0, 3.0], device)
tensor_2 = Tensor[1].from_data(TensorData([1.0, 2.0, 3.0]), device)
tensor_3 = Tensor[1].from_floats([1.0, 2.0, 3.0], device)
tensor_4 = Tensor[1, Int].from_data(part, device)

print(repr(part))
show(one=tensor_1, two=tensor_2, three=tensor_3, four=tensor_4)


# %% [markdown]
# For a type of your own, put its numbers in a list.


# %% tags=["run-me", "cell:from-struct", "rust:from-struct"]
@dataclass
class BodyMetrics:
    age: int
    height: int
    weight: float


bmi = BodyMetrics(age=25, height=180, weight=80.0)
data = TensorData([float(bmi.age), float(bmi.height), bmi.weight])
tensor_5 = Tensor[1].from_data(data, device)
show(bmi=tensor_5)

# %% [markdown]
# ## Data out
#
# `to_data()` and `into_data()` give a `TensorData`; in Python the two are the same, since
# nothing is consumed. It can be read in several ways, but never written to: instead of
# Burn's `as_mut_slice`, `np.array(data)` makes a copy that can be changed.

# %% tags=["run-me", "cell:data-readers", "rust:data-readers"]
data = marks.to_data()
print(data.shape, data.dtype, len(data.bytes), "bytes")
print("flat     ", data.to_vec(), list(data.iter("i64")))
print("nested   ", data.to_list())
print("NumPy    ", data.as_slice(), data.to_numpy().shape)
print("one      ", marks.max().into_scalar())
print("print    ", data)

# %% [markdown]
# NumPy reads a tensor directly. It gets a read-only view that shares the tensor's memory;
# `np.array(…)` makes a copy to work on.

# %% tags=["run-me", "cell:into_primitive"]
view = np.asarray(marks)
print(view.flags.writeable, np.shares_memory(view, marks.into_primitive()))

mine = np.array(marks)
mine[0, 0] = 0.0
show(mine=Tensor.from_numpy(mine, device), marks=marks)

# %% [markdown]
# ## Ownership
#
# Scale four numbers to the range from 0 to 1. In Rust an operation takes *ownership* of
# its input: after `values.min()` the variable `values` is moved, and the compiler
# rejects any further use. The book's solution is `.clone()`. Here the plain version
# works:

# %% tags=["run-me", "cell:normalize-moved", "rust:normalize-moved"]
values = Tensor[1].from_floats([1.0, 2.0, 3.0, 4.0], device)
low = values.min()
high = values.max()
normalized = (values - low).div(high - low)
print(normalized.to_data())

# %% [markdown]
# Why does Python not need it? A name refers to a tensor, and a tensor never changes, so
# it does not matter how many names there are. Burn's `clone` only increases a reference
# count, which Python does for every name anyway.

# %% tags=["run-me", "cell:normalize"]
clone = values.clone()  # another name for the same four numbers
square = values.reshape([2, 2])
print(np.shares_memory(clone, values), np.shares_memory(square, values))
show(values=values, low=low, high=high)  # all still there

# %% [markdown]
# <details><summary><b>🐍 Python note: moved, borrowed, shared</b></summary>
#
# Rust knows at compile time where a value is used for the last time, so Burn can reuse
# its memory: that is why it needs no in-place operations. Python counts references at
# run time. `del x` removes a name, and the memory is freed when the last name is gone.
# `x += 1` does not change a tensor either: it computes `x + 1` and gives the result the
# name `x`. There is one exception, in Burn as here: `x.inplace(f)` replaces x by f(x).
# </details>

# %% tags=["run-me"]
before = values
values += 10.0
show(values=values, before=before)

# %% [markdown]
# ## Broadcasting
#
# Two tensors fit when their ranks are equal and, in each dim, the sizes are equal or one
# of them is 1. That one stretches. Missing dims are not added silently as in NumPy: [3]
# and [2, 3] do not fit until you call `unsqueeze()`.

# %% tags=["run-me", "cell:unsqueeze", "rust:unsqueeze"]
column = Tensor[2].from_floats([[10.0], [20.0]], device)  # [2, 1]
line = Tensor[1].from_floats([1.0, 2.0, 3.0], device)  # [3]
show(sum=column + line.unsqueeze())  # [2, 1] + [1, 3] -> [2, 3]

# %% [markdown]
# ## See it
#
# A tensor as the last line of a cell is displayed with its shape, its statistics, a
# histogram, and its numbers on a color: blue above zero, orange below. This one holds
# the difference of any two positions; change the 8.

# %% tags=["widget", "cell:unsqueeze_dim"]
places = Tensor[1, Int].arange(0, 8, device).float()
places.unsqueeze_dim(0) - places.unsqueeze_dim(1)

# %% [markdown]
# For a tensor of higher rank `TensorView` shows two dims, with sliders for the others.
# Point at a cell, or use the arrow keys, to read an element; choose which dims are rows
# and columns, and how the numbers are printed.

# %% tags=["widget"]
apart = places.unsqueeze_dim(0) - places.unsqueeze_dim(1)
times = (places - 3.0).reshape([8, 1, 1])
TensorView(times * apart.unsqueeze_dim(0), index={0: 5})

# %% [markdown]
# ## Slicing
#
# `slice` takes one range per dim; dims without a range are kept whole. Square brackets
# are Python's form of the same. Negative numbers count from the end, and an end beyond
# the size is clamped to it.

# %% tags=["run-me", "cell:slice", "rust:slice"]
table = Tensor[1, Int].arange(0, 6, device).reshape([2, 3])
show(
    table=table,
    book=table.slice([(0, -1), (0, -2)]),
    brackets=table[0:-1, 0:-2],
    second_dim=table.slice([None, (1, 3)]),
    clamped=table[:, 1:99],
    an_int=table[1],  # drops its dim
    a_mask=table[table > 2],
)

# %% [markdown]
# Where NumPy returns an empty array, this is an error, because it nearly always is a
# mistake: a range that is empty, or begins before the first element.

# %% tags=["raises-exception"]
table[:, 2:1]

# %% [markdown]
# A tensor cannot be changed, so `slice_assign` returns a new one:

# %% tags=["run-me", "cell:slice_assign", "rust:slice_assign"]
nines = Tensor[2, Int].full([2, 1], 9, device)
show(assigned=table.slice_assign([(0, 2), (0, 1)], nines), table=table)

# %% [markdown]
# ## The operations
#
# The book's tables, family by family: what has not come up yet is in the cells below, as
# `name=its result`. Four conventions differ from NumPy and PyTorch:
#
# | convention | example |
# |---|---|
# | a reduction along a dim keeps it, with size 1 | `sum_dim(1)` of [2, 3] is [2, 1] |
# | a reduction of everything gives shape [1] | rank 0 does not exist |
# | Int stays Int | `int / int` truncates toward zero, and warns where a rest is lost |
# | nothing happens in place | `slice_assign`, `scatter` and `mask_fill` give new tensors |

# %% [markdown]
# ### Basic: every kind
#
# Join and split:

# %% tags=["run-me", "cell:cat", "rust:cat"]
pair = Tensor[2, Int].from_ints([[1, 2], [3, 4]], device)
first, second = pair.chunk(2, 0)
show(
    cat=Tensor.cat([pair, pair], 1),
    stack=Tensor.stack([pair, pair], 0),
    chunk=second,
    narrow=pair.narrow(1, 0, 1),
    expand=pair.narrow(1, 0, 1).expand([2, 3]),
    repeat_dim=pair.repeat_dim(1, 2),
    repeat=pair.repeat([1, 2]),
    flip=pair.flip([0]),
)

# %% [markdown]
# Other shapes, the same elements:

# %% tags=["run-me", "cell:dims", "rust:dims"]
cube = Tensor[1, Int].arange(0, 24, device).reshape([2, 3, -1])  # [2, 3, 4]
print("reshape      ", cube.dims(), cube.shape, cube.shape.num_elements())
print("permute      ", cube.permute([2, 0, 1]).dims())
print("movedim      ", cube.movedim(0, 2).dims())
print("swap_dims    ", cube.swap_dims(0, 1).dims())
print("transpose    ", cube.transpose().dims())
print("flatten      ", cube.flatten(1, 2).dims())
print("squeeze      ", cube.narrow(0, 0, 1).squeeze(0).dims())
print("unsqueeze    ", cube.unsqueeze(5).dims())
print("unsqueeze_dim", cube.unsqueeze_dim(1).dims())

# %% [markdown]
# Conditions on all elements, and moving between devices. `empty` has a shape, but
# arbitrary elements; a *primitive* is the bare array of the backend.

# %% tags=["run-me", "cell:empty", "rust:equal"]
other = Tensor[2, Int].from_ints([[1, 0], [3, 0]], device)
show(
    equal=pair.equal(other),
    not_equal=pair.not_equal(other),
    all=other.all(),
    all_dim=other.all_dim(0),
    any=other.any(),
    any_dim=other.any_dim(1),
)
print(Tensor[2].empty([2, 2], device).dims(), pair.device())
print(pair.to_device(Numpy(int="i32")).dtype, pair.into_data())
again = Tensor[2, Int].from_primitive(pair.into_primitive(), device)
print(pair.equal(again).all().into_scalar())

# %% [markdown]
# ### Numeric: Float and Int
#
# Making them:

# %% tags=["run-me", "cell:eye", "rust:eye"]
show(
    eye=Tensor[2].eye(2, device),
    full=Tensor[1].full([3], 7.0, device),
    ones=Tensor[1].ones([3], device),
    zeros=Tensor[1].zeros([3], device),
    no_device=Tensor[1].zeros([3]),  # Numpy()
    full_like=pair.full_like(5),
    ones_like=pair.ones_like(),
    zeros_like=pair.zeros_like(),
)

# %% [markdown]
# Arithmetic, with a tensor or with a number. Int stays Int: results are truncated toward
# zero. `div` does that in silence, and `/` warns where it cuts a rest off, as Python's `/`
# would not; `x + 1.7` is an error that asks for `x.float()`. `%` takes the sign of the
# divisor, as in Python.

# %% tags=["run-me", "cell:abs", "rust:abs"]
x = Tensor[1, Int].from_ints([-7, 4], device)
y = Tensor[1, Int].from_ints([2, 3], device)
show(add=x + y, sub=x - y, mul=x * y, div=x.div(y), rem=x % y, neg=-x)
show(
    add_scalar=x + 1,
    sub_scalar=x - 1,
    mul_scalar=x * 2,
    div_scalar=x.div_scalar(2),
)
show(methods=x.add(y).sub_scalar(1).mul(y), abs=x.abs(), sign=x.sign())

# %% tags=["run-me", "cell:clamp", "rust:clamp"]
a = Tensor[1].from_floats([1.0, 4.0, 9.0], device)
b = Tensor[1].from_floats([2.0, 2.0, 0.5], device)
whole = Tensor[1].from_floats([0.0, 1.0, 2.0], device)
show(
    powf=a.powf(b),
    powi=a.powi(whole),
    powf_scalar=a.powf_scalar(0.5),
    powi_scalar=a.powi_scalar(2),
    max_pair=a.max_pair(b),
    min_pair=a.min_pair(b),
    clamp=a.clamp(2.0, 5.0),
    clamp_min=a.clamp_min(2.0),
    clamp_max=a.clamp_max(5.0),
)

# %% [markdown]
# Comparisons give Bool. Floats are better compared with `is_close`:
# |x − y| ≤ atol + rtol · |y|. The two tolerances are named arguments, because the book
# and Burn's source order them differently.

# %% tags=["run-me", "cell:equal_elem", "rust:equal_elem"]
show(
    greater=a.greater(b),
    greater_equal=a.greater_equal(b),
    lower=a.lower(b),
    lower_equal=a.lower_equal(b),
    greater_elem=a.greater_elem(4.0),
    greater_equal_e=a.greater_equal_elem(4.0),
    lower_elem=a.lower_elem(4.0),
    lower_equal_elem=a.lower_equal_elem(4.0),
    equal_elem=a.equal_elem(4.0),
    not_equal_elem=a.not_equal_elem(4.0),
)

# %% tags=["run-me", "cell:all_close", "rust:all_close"]
odd = Tensor[1].from_floats([1.0, float("nan"), 0.0], device)
near = odd + 0.001
show(
    is_nan=odd.is_nan(),
    contains_nan=odd.contains_nan(),
    bool=odd.bool(),
    is_close=near.is_close(odd, rtol=0.0, atol=0.01),
)
print("all_close       ", a.all_close(a * 1.001, rtol=0.01, atol=0.0))

# %% [markdown]
# Reductions, of everything and along a dim:

# %% tags=["run-me", "cell:argmax", "rust:argmax"]
best, where_best = marks.max_dim_with_indices(0)
worst, where_worst = marks.min_dim_with_indices(0)
show(sum=marks.sum(), mean=marks.mean(), prod=marks.prod())
show(max=marks.max(), min=marks.min())
show(sum_dim=marks.sum_dim(0), mean_dim=marks.mean_dim(1))
show(prod_dim=marks.prod_dim(0), max_dim=marks.max_dim(0))
show(min_dim=marks.min_dim(0), argmax=marks.argmax(0), argmin=marks.argmin(0))
show(best=best, where_best=where_best, worst=worst, where_worst=where_worst)

# %% [markdown]
# Sorting is stable: equal elements keep their order.

# %% tags=["run-me", "cell:argsort", "rust:argsort"]
s = Tensor[1].from_floats([3.0, 1.0, 2.0], device)
up, up_from = s.sort_with_indices(0)
down, down_from = s.sort_descending_with_indices(0)
top, top_from = s.topk_with_indices(2, 0)
show(sort=s.sort(0), sort_descending=s.sort_descending(0))
show(argsort=s.argsort(0), argsort_desc=s.argsort_descending(0))
show(topk=s.topk(2, 0), up=up, up_from=up_from)
show(down=down, down_from=down_from, top=top, top_from=top_from)

# %% [markdown]
# Selecting by index. `gather` picks single elements along a dim, `select` whole rows or
# columns; `scatter` and `select_assign` are their inverses, and *add* to what is there. A
# mask replaces elements.

# %% tags=["run-me", "cell:gather", "rust:gather"]
index = Tensor[2, Int].from_ints([[0], [1], [0]], device)
rows_2 = Tensor[1, Int].from_ints([2, 0], device)
ones = Tensor[2].ones([3, 1], device)
square = Tensor[2].ones([2, 2], device)
show(
    gather=marks.gather(1, index),
    scatter=marks.scatter(1, index, ones),
    select=marks.select(0, rows_2),
    select_assign=marks.select_assign(0, rows_2, square),
    mask_fill=marks.mask_fill(marks.lower_elem(6.0), 6.0),
    mask_where=marks.mask_where(marks.greater_elem(8.0), -marks),
)

# %% tags=["run-me", "cell:pad", "rust:pad"]
show(
    tril=square.tril(0),
    triu=square.triu(0),
    pad=square.pad((1, 0, 0, 1), 9.0),  # left, right, top, bottom
)

# %% [markdown]
# ### Float
#
# Rounding (halves to even), functions, and the matrix product. `int()` truncates.

# %% tags=["run-me", "cell:one_hot", "rust:one_hot"]
h = Tensor[1].from_floats([-1.5, 0.5, 2.5], device)
show(ceil=h.ceil(), floor=h.floor(), round=h.round(), int=h.int())
p = Tensor[1].from_floats([0.5, 1.0, 2.0], device)
show(3, exp=p.exp(), log=p.log(), log1p=p.log1p(), sqrt=p.sqrt())
show(3, recip=p.recip(), sin=p.sin(), cos=p.cos(), tanh=p.tanh(), erf=p.erf())
show(matmul=square.matmul(square * 3.0), swap_dims=marks.swap_dims(0, 1))
show(transpose=marks.transpose(), one_hot=Tensor[1].one_hot(2, 4, device))

# %% [markdown]
# `var` divides by n − 1, `var_bias` by n; with the suffix `_mean`, the mean is returned
# as well.

# %% tags=["run-me", "cell:var", "rust:var"]
var_mean, mean = marks.var_mean(0)
var_mean_bias, _ = marks.var_mean_bias(0)
show(2, var=marks.var(0), var_bias=marks.var_bias(0))
show(2, var_mean=var_mean, mean=mean, var_mean_bias=var_mean_bias)

# %% [markdown]
# Random numbers depend on the seed, in the same way on every backend. And tensors of a
# backend with 16-bit floats can be converted to 32 bits, for the steps that need the
# precision:

# %% tags=["run-me", "cell:from_full_precision", "rust:random"]
drawn = Tensor[2].random([2, 2], Distribution.Uniform(0.0, 10.0), device)
again = drawn.random_like(Distribution.Bernoulli(0.5))
show(2, random=drawn, random_like=again)

half = Tensor[1].from_floats([0.1], Numpy(float="f16"))
full = half.to_full_precision()
print(full.dtype, half.from_full_precision(full * full).dtype)

# %% [markdown]
# ### Int
#
# Ranges, which exclude their end; the coordinates of a grid; one-hot rows for classes.

# %% tags=["run-me", "cell:arange", "rust:arange"]
dice = Distribution.Uniform(1, 7)
show(
    arange=Tensor[1, Int].arange(5, 10, device),
    arange_step=Tensor[1, Int].arange_step(5, 10, 2, device),
    from_ints=Tensor[1, Int].from_ints([2, 0], device),
    float=Tensor[1, Int].arange(0, 3, device).float(),
    int_random=Tensor[1, Int].int_random([8], dice, device),
    cartesian_grid=Tensor[3, Int].cartesian_grid([2, 2], device),
    one_hot=Tensor[1, Int].from_ints([2, 0], device).one_hot(3),
)

# %% [markdown]
# ### Bool
#
# The three masks say what to mask out: `tril_mask` is *false* where `tril` keeps.

# %% tags=["run-me", "cell:diag_mask", "rust:diag_mask"]
mask = Tensor[2, Bool].tril_mask([2, 2], 0, device)
show(
    tril_mask=mask,
    triu_mask=Tensor[2, Bool].triu_mask([2, 2], 0, device),
    diag_mask=Tensor[2, Bool].diag_mask([2, 2], 0, device),
    bool_not=mask.bool_not(),
    float=mask.float(),
    int=mask.int(),
    argwhere=mask.bool_not().argwhere(),
)
print([places.to_data().to_list() for places in mask.bool_not().nonzero()])

# %% [markdown]
# The book's last table of methods is about quantization: `Tensor.quantize` and its kin.
#
# ### Activation functions
#
# The nonlinear functions between layers are in `activation` and take a tensor first.

# %% tags=["run-me", "cell:gelu", "rust:gelu"]
z = Tensor[1].from_floats([-2.0, 0.0, 2.0], device)
slope = Tensor[1].from_floats([0.25], device)
show(
    2,
    relu=activation.relu(z),
    leaky_relu=activation.leaky_relu(z, 0.1),
    prelu=activation.prelu(z, slope),
    gelu=activation.gelu(z),
    silu=activation.silu(z),
    mish=activation.mish(z),
    softplus=activation.softplus(z, 1.0),
)

# %% tags=["run-me", "cell:hard_sigmoid", "rust:hard_sigmoid"]
show(
    3,
    sigmoid=activation.sigmoid(z),
    log_sigmoid=activation.log_sigmoid(z),
    hard_sigmoid=activation.hard_sigmoid(z, 0.2, 0.5),
    tanh=activation.tanh(z),
    softmax=activation.softmax(z, 0),
    log_softmax=activation.log_softmax(z, 0),
    softmin=activation.softmin(z, 0),
    quiet_softmax=activation.quiet_softmax(z, 0),
)

# %% tags=["widget"]
wide = Tensor[1, Int].arange(-40, 41, device).float() / 10.0
Lines(
    {
        "relu": activation.relu(wide),
        "gelu": activation.gelu(wide),
        "softplus": activation.softplus(wide, 1.0),
    },
    "Three activations",
    x=wide,
    x_label="x",
)

# %% [markdown]
# ### The table, as a program
#
# `python -m burnbook.reference.stubs --table` lists every function with its kinds, whether it
# has a gradient, and what PyTorch calls it. From Python it is a list:

# %% tags=["run-me"]
book = [row for row in rows() if row.edition == "book" and row.torch]
for row in book:
    if row.torch != row.name and row.section == "basic":
        print(f"{row.name:<14} is torch's {row.torch}")

# %% [markdown]
# ## Element types
#
# A kind says what elements mean, an element type how they are stored. `convert` and
# `ElementConversion` follow Burn's rules: fractions are truncated, and a number that
# does not fit is an error.

# %% tags=["run-me", "rust:convert"]
print(
    TensorData([2.9, -2.9]).convert("i32"), ElementConversion.elem(2.9, "i32")
)
print(TensorData([True, False]).convert("f32"))
print(TensorData([1e39], dtype="f64").convert("f32"))  # beyond f32
print(TensorData([0.5, 2.0]).convert("bool"))  # by way of u8: 0 and 2

# %% tags=["raises-exception"]
TensorData([1.0, 300.0]).convert("u8")

# %% [markdown]
# ## Display
#
# `print` shows all numbers; `repr` is one line with statistics; the colored display above
# is the third view. Numbers have the fewest digits that still identify the same 32-bit
# number.

# %% tags=["run-me", "cell:print", "rust:print"]
tensor = Tensor[2].full([2, 3], 0.123456789, device)
print(tensor)

# %% [markdown]
# The format after the colon chooses the decimals, for this print only:

# %% tags=["run-me", "cell:precision", "rust:precision"]
print(f"{tensor:.2}")

# %% [markdown] tags=["cell:option-threshold"]
# `set_print_options` applies to every print from now on, on the whole page; so this cell
# restores the defaults. If there are more elements than `threshold`, only `edge_items`
# at either end of a long dim are shown.

# %% tags=["run-me", "cell:options", "rust:options"]
long = Tensor[1, Int].arange(0, 2000, device)
show(default=long.float())
set_print_options(PrintOptions(precision=2, threshold=100, edge_items=2))
show(options=long.float())
set_print_options(PrintOptions())
show(default_again=long.float())

# %% [markdown] tags=["cell:closeness-colors"]
# ## How close?
#
# Two ways to compute the same thing rarely agree in the last digit. `check_closeness`
# counts the elements that agree at eight tolerances: green when all do, yellow from 90 %
# on, red below (in color on a terminal; NO_COLOR turns that off).

# %% tags=["run-me", "cell:closeness", "rust:closeness"]
tensor1 = Tensor[1].from_floats(
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.001, 7.002, 8.003, 9.004, 10.1], device
)
tensor2 = Tensor[1].from_floats(
    [1.0, 2.0, 3.0, 4.000, 5.0, 6.0, 7.001, 8.002, 9.003, 10.004], device
)
report = check_closeness(tensor1, tensor2)
print(report)

# %% [markdown]
# The report is also an object: a table on a page, and data for a program.

# %% tags=["run-me"]
print(report.within, report.level(1e-3).verdict, report.largest > 0.09)
report


# %% [markdown]
# In a computation with many steps one wants to know where a difference arises.
# `ClosenessView` takes the results of all steps by name (or two models and an input) and
# compares each. Here are three steps in 16 bits beside the same in 32: choose a step,
# another tolerance, or sort by the largest difference.


# %% tags=["widget"]
def steps(device):
    whole = Tensor[1, Int].arange(1, 41, device).float()
    fifths = whole / 5.0
    squares = fifths * fifths
    return {"whole": whole, "fifths": fifths, "squares": squares}


ClosenessView(steps(Numpy(float="f16")), steps(device))

# %% [markdown]
# ## Look inside
#
# A method comes from an op, and an op is declared once: kinds, code, gradients. The
# kinds are letters: `FF>F` says that it takes two Float tensors and returns one.

# %% tags=["peek"]
peek(ops.max_pair)

# %% [markdown]
# ## Where it breaks
#
# Rank, kind, shape: the three most common errors. The first line says which it is, the
# next lines describe both inputs, and `try` is the fix where there is just one.

# %% tags=["raises-exception"]
marks + line

# %% tags=["raises-exception"]
marks * table

# %% tags=["raises-exception"]
marks @ marks

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 4.2.1: scale each row of t to the range from 0 to 1
t = Tensor[2].from_floats([[1.0, 2.0, 5.0], [10.0, 30.0, 20.0]], device)
answer = ...
check("4.2.1", answer)

# %% tags=["solution"]
low, high = t.min_dim(1), t.max_dim(1)
answer = (t - low) / (high - low)
check("4.2.1", answer)

# %% tags=["exercise"]
# exercise 4.2.2: the four elements in the middle of grid, as [2, 2]
grid = Tensor[1, Int].arange(0, 16, device).reshape([4, 4])
answer = ...
check("4.2.2", answer)

# %% tags=["solution"]
answer = grid[1:-1, 1:-1]
check("4.2.2", answer)

# %% tags=["exercise"]
# exercise 4.2.3: Tensor[1, Int].from_ints([-9, 9], device).div(2), by head
answer = ...  # a list
check("4.2.3", answer)

# %% tags=["solution"]
answer = [-4, 4]
check("4.2.3", answer)

# %% tags=["exercise"]
# exercise 4.2.4: the distance |pᵢ − pⱼ| of every two points, as [3, 3]
points = Tensor[1].from_floats([0.0, 1.0, 5.0], device)
answer = ...
check("4.2.4", answer)

# %% tags=["solution"]
answer = (points.unsqueeze_dim(0) - points.unsqueeze_dim(1)).abs()
check("4.2.4", answer)

# %% tags=["exercise"]
# exercise 4.2.5: the smallest of the eight tolerances within which all of c
# and c_off agree
c = Tensor[1].from_floats([1.0, 100.0], device)
c_off = Tensor[1].from_floats([1.0, 100.05], device)
answer = ...
check("4.2.5", answer)

# %% tags=["solution"]
answer = check_closeness(c, c_off).within
check("4.2.5", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why is <code>Tensor[5]</code> wrong for five numbers?</summary>
#
# The number is the rank: how many dims there are, not how large they are.
# </details>
#
# <details><summary>Why do <code>sum_dim</code> and <code>max_dim</code> keep their dim?</summary>
#
# So that the result has the rank of the input and can be broadcast against it:
# `x - x.mean_dim(1)` needs no reshaping.
# </details>
#
# <details><summary>What does a copy of a tensor cost?</summary>
#
# Nothing: tensors do not change, so any number of names may refer to the same one. Only
# a copy into memory that can be changed, such as `np.array(x)`, copies the numbers.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: what the brackets do</b></summary>
#
# `x[1:3, 0]` calls `x.__getitem__((slice(1, 3), 0))`. Burn 0.15 has ranges only; here
# an int drops its dim as in NumPy, an Int tensor picks like `select`, and a Bool tensor
# of the same shape picks elements. Steps other than 1 are refused.
# </details>
#
# <details><summary><b>🐍 Python note: equality</b></summary>
#
# `x == y` compares element by element and gives a Bool tensor. `if x == y:` therefore
# needs `.all()` first, unless there is just one element. To compare the data as a whole,
# use `x.to_data() == y.to_data()`.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - `Tensor[rank, kind]` states what you expect; the shape follows from the data.
# - Tensors never change, so names cost nothing and `clone` is not needed.
# - Ranks must be equal, sizes equal or 1; every other conversion is explicit.
# - `print` for digits, `repr` for statistics, the last line of a cell for the display.
# - `check_closeness` says how closely two results agree.
#
# **Where this lives.**
#
# | part | start reading here |
# |---|---|
# | the class, `burnbook/tensor` | `burnbook/tensor/tensor.py`; each file beside it is one family of methods |
# | data in and out | `burnbook/tensor/create.py`, `burnbook/tensor/data.py` |
# | functions | `burnbook/tensor/activation.py`, `burnbook/tensor/linalg.py`, `burnbook/tensor/module.py` |
# | printing and comparing | `burnbook/tensor/display.py`, `burnbook/tensor/closeness.py`, `burnbook/text/table.py` |
# | the operations, `burnbook/ops` | `burnbook/ops/elementwise.py`, then `burnbook/ops/linear.py` |
# | from op to method | `burnbook/tensor/methods.py`, `burnbook/reference/table.py`, `burnbook/reference/stubs.py` |
# | dtypes, errors | `burnbook/core` |
# | the views | `widgets/burnbook_widgets/tensor`, `widgets/burnbook_widgets/closeness.py`, `widgets/burnbook_widgets/view.py`, `widgets/burnbook_widgets/saving.py` |
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `Tensor[2]`, `Tensor[1, Int]` | `Tensor<B, 2>`, `Tensor<B, 1, Int>` | `Tensor<2>`, `Tensor<1, Int>` |
# | `TensorData([1.0, 2.0])` | `TensorData::from([1.0, 2.0])` | the same |
# | `x.to_data()` | `x.to_data()`, or `x.into_data()` | the same |
# | `x` | `x.clone()` | the same |
# | `x[0:1, 1:3]` | `x.slice([0..1, 1..3])` | the same |
# | `x % y` | `x % scalar` only | `x.remainder(y)` |
# | `x.equal_elem(2.0)` | `x.equal_elem(2.0)` | `x.equal_scalar(2.0)` |
# | `mask.bool_not()`, `~mask` | `mask.bool_not()` | the same |
# | `f"{x:.2}"` | `format!("{:.2}", x)` | the same |
# | `print(check_closeness(x, y))` | `check_closeness(&x, &y)` | the same |
#
# Next: [4.3 · Autodiff](04_03_autodiff.ipynb)
