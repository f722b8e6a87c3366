"""What is known of functions that are made of others.

An op declares its kinds, shapes and gradient. A function made of ops is ordinary tensor
code and declares nothing, so the table of operations reads here what it takes (F Float,
I Int, B Bool), whether gradients flow through it (+, - or . where there is nothing to
flow to), and its shapes, where the docstring does not say them. Tests call each one.
"""

from typing import NamedTuple


class Composed(NamedTuple):
    """What the table says about a function that is made of others."""

    kinds: str  # "F I > B": Float or Int in, Bool out; without ">" the same kind
    gradient: str  # "yes", "no" or ""
    shapes: str  # "" where the docstring says them


SAME = "x [...] -> [...]"
KEPT = "x [..., d, ...] -> [..., 1, ...]"
FACTS = f"""
empty                 > F I B   .  -> shape
from_primitive        > F I B   .  array [...] -> [...]
stack                 F I B     +  n tensors [...] -> [..., n, ...]
chunk                 F I B     +  x [..., d, ...] -> chunks of [..., dᵢ, ...]
device                F I B     .  -> a backend
dims                  F I B     .  -> a tuple of sizes
flatten               F I B     +  x [..., a, …, b, ...] -> [..., a · … · b, ...]
into_data             F I B     .  -> TensorData [...]
into_primitive        F I B     .  -> an array [...]
into_scalar           F I B     .  x with one element -> a number
at                    F I B     .  x [...] -> what waits for brackets
narrow                F I B     +  x [..., d, ...] -> [..., length, ...]
movedim               F I B     +  x [..., a, ...] -> [..., a, ...]
repeat_dim            F I B     +  x [..., d, ...] -> [..., times · d, ...]
repeat                F I B     +  x [d₁, …] -> [times₁ · d₁, …]
shape                 F I B     .  -> a Shape, which is a tuple
squeeze               F I B     +  x [..., 1, ...] -> [...]
to_data               F I B     .  -> TensorData [...]
to_device             F I B     +  {SAME}
unsqueeze             F I B     +  x [...] -> [1, …, ...]
unsqueeze_dim         F I B     +  x [...] -> [..., 1, ...]
from_data             > F I B   .  lists or data [...] -> [...]
transpose             F I B     +  x [..., m, n] -> [..., n, m]
squeeze_dims          F I B     +  x [..., 1, …, 1, ...] -> [...]
unsqueeze_dims        F I B     +  x [...] -> [..., 1, …, 1, ...]
iter_dim              F I B     +  x [..., d, ...] -> d tensors [..., 1, ...]
inplace               F         +  x [...] -> itself, as the function says
dtype                 F I B     .  -> the name of the element type
rank                  F I B     .  -> the number of dims
empty_like            F I B     .  {SAME}
split                 F I B     +  x [..., d, ...] -> pieces [..., size, ...]
split_with_sizes      F I B     +  x [..., d, ...] -> pieces [..., sizeᵢ, ...]
roll_dim              F I B     +  {SAME}
slice_dim             F I B     +  x [..., d, ...] -> [..., n, ...]
slice_fill            F I B     +  {SAME}
select_dim            F I B     +  x [..., d, ...] -> [...]
take                  F I B     +
gather_nd             F I B     +
scatter_nd            F I       +
mask_select           F I B     +  x [...], mask [...] -> [count]
t                     F I B     +  x [m, n] -> [n, m]
unfold                F I B     +
squeeze_dim           F I B     +  x [..., 1, ...] -> [...]
equal_scalar          F I B > B -  {SAME}
not_equal_scalar      F I B > B -  {SAME}

einsum                F I       +  tensors, a letter for each dim -> a dim for each
eye                   > F I     .  -> [size, size]
full                  > F I B   .  -> shape
ones                  > F I B   .  -> shape
zeros                 > F I B   .  -> shape
add_scalar            F I       +  {SAME}
all_close             F I       .  x [...], y [...] -> True or False
argsort_descending    F I > I   -  {SAME}
bool                  F I B > B -  {SAME}
clamp_max             F I       +  {SAME}
clamp_min             F I       +  {SAME}
contains_nan          F I > B   -  x [...] -> [1]
div_scalar            F I       +  {SAME}
equal_elem            F I B > B -  {SAME}
full_like             F I B     .  {SAME}
greater_elem          F I > B   -  {SAME}
greater_equal_elem    F I > B   -  {SAME}
is_close              F I > B   -  x [...], y [...] -> [...]
lower_elem            F I > B   -  {SAME}
lower_equal_elem      F I > B   -  {SAME}
max_dim_with_indices  F I       +  x [..., d, ...] -> [..., 1, ...], [..., 1, ...]
min_dim_with_indices  F I       +  x [..., d, ...] -> [..., 1, ...], [..., 1, ...]
mul_scalar            F I       +  {SAME}
not_equal_elem        F I B > B -  {SAME}
ones_like             F I B     .  {SAME}
powi                  F I       +  x [...], y [...] -> [...]
powf_scalar           F I       +  {SAME}
powi_scalar           F I       +  {SAME}
sort_descending       F I       +  {SAME}
sort_with_indices     F I       +  x [...] -> [...], [...]
sort_descending_with_indices  F I  +  x [...] -> [...], [...]
sub_scalar            F I       +  {SAME}
topk                  F I       +  x [..., d, ...] -> [..., k, ...]
topk_with_indices     F I       +  x [..., d, ...] -> [..., k, ...], [..., k, ...]
tril                  F I B     +  x [..., m, n] -> [..., m, n]
triu                  F I B     +  x [..., m, n] -> [..., m, n]
zeros_like            F I B     .  {SAME}
remainder_scalar      F I       +  {SAME}
dot                   F I       +
max_abs               F I       +  x [...] -> [1]
max_abs_dim           F I       +  {KEPT}
max_abs_dims          F I       +  {KEPT}
max_dims              F I       +  {KEPT}
mean_dims             F I       +  {KEPT}
min_dims              F I       +  {KEPT}
prod_dims             F I       +  {KEPT}
sum_dims              F I       +  {KEPT}
sum_dims_squeeze      F I       +  x [..., d, ...] -> [...]
one_hot_fill          I         -
fmod_scalar           F I       +  {SAME}
greater_scalar        F I > B   -  {SAME}
greater_equal_scalar  F I > B   -  {SAME}
lower_scalar          F I > B   -  {SAME}
lower_equal_scalar    F I > B   -  {SAME}

float.one_hot         > F       .  -> [num_classes]
from_floats           > F       .  lists or data [...] -> [...]
from_full_precision   F         +  {SAME}
float.int             F > I     -  {SAME}
random                > F I     .  -> shape
random_like           F I       .  {SAME}
to_full_precision     F         +  {SAME}
std                   F         +  {KEPT}
std_bias              F         +  {KEPT}
logsumexp             F         +  {KEPT}
var                   F         +  {KEPT}
var_bias              F         +  {KEPT}
var_mean              F         +  x [..., d, ...] -> [..., 1, ...], [..., 1, ...]
var_mean_bias         F         +  x [..., d, ...] -> [..., 1, ...], [..., 1, ...]
cov                   F         +
into_full_precision   F         +  {SAME}
deg2rad               F         +  {SAME}
rad2deg               F         +  {SAME}
cross                 F         +
median                F         +  {KEPT}
median_with_indices   F         +  x [..., d, ...] -> [..., 1, ...], [..., 1, ...]
grid_sample_2d        F         +
categorical           F > I     -

arange                > I       .  -> [end − start]
arange_step           > I       .  -> [(end − start) / step]
int.float             I > F     -  {SAME}
from_ints             > I       .  lists or data [...] -> [...]
int_random            > I       .  -> shape
cartesian_grid        > I       .
int.one_hot           I         -  x [n] -> [n, num_classes]
bitwise_and_scalar    I         -  {SAME}
bitwise_or_scalar     I         -  {SAME}
bitwise_xor_scalar    I         -  {SAME}
bitwise_left_shift_scalar   I   -  {SAME}
bitwise_right_shift_scalar  I   -  {SAME}

diag_mask             > B       .  -> [1, …, 1, h, w]
tril_mask             > B       .  -> [1, …, 1, h, w]
triu_mask             > B       .  -> [1, …, 1, h, w]
bool.float            B > F     -  {SAME}
bool.int              B > I     -  {SAME}
nonzero               B > I     -  x [d₁, …, dᵣ] -> r tensors [count]
from_bool             > B       .  lists or data [...] -> [...]

quantize              F         -  {SAME}
quantize_dynamic      F         -  {SAME}
dequantize            F         -  {SAME}

detach                F         -  {SAME}
require_grad          F         +  {SAME}
is_require_grad       F I B     .  -> True or False
set_require_grad      F         +  {SAME}
backward              F         .  x [...] -> Gradients
grad                  F         .  x [...] -> [...] or None
grad_remove           F         .  x [...] -> [...] or None
grad_replace          F         .  x [...], gradient [...] -> nothing
inner                 F I B     -  {SAME}
from_inner            F I B     -  {SAME}

hard_sigmoid          F         +  {SAME}
prelu                 F         +
quiet_softmax         F         +  {SAME}
softmin               F         +  {SAME}
cross_entropy_with_logits  F    +
celu                  F         +  {SAME}
glu                   F         +
gelu_approximate      F         +  {SAME}
hard_shrink           F         +  {SAME}
hard_swish            F         +  {SAME}
hardtanh              F         +  {SAME}
relu6                 F         +  {SAME}
selu                  F         +  {SAME}
shrink                F         +  {SAME}
soft_shrink           F         +  {SAME}
softsign              F         +  {SAME}
tanhshrink            F         +  {SAME}
threshold             F         +  {SAME}
thresholded_relu      F         +  {SAME}

cosine_similarity     F         +  x1 [..., d, ...], x2 [..., d, ...] -> [..., 1, ...]
diag                  F         +
l0_norm               F         -  {KEPT}
l1_norm               F         +  {KEPT}
l2_norm               F         +  {KEPT}
lp_norm               F         +  {KEPT}
lu                    F         +
lu_decomposition      F         +
qr                    F         +
matvec                F         +
max_abs_norm          F         +  {KEPT}
min_abs_norm          F         +  {KEPT}
outer                 F         +
outer_dim             F         +
trace                 F         +
vector_norm           F         +  {KEPT}
vector_normalize      F         +  {SAME}

rfft                  F         +
irfft                 F         +
cfft                  F         +
stft                  F         +
istft                 F         +
blackman_window       > F       .  -> [size]
hamming_window        > F       .  -> [size]
hann_window           > F       .  -> [size]

affine_grid_2d        F         +
meshgrid              F I       +
meshgrid_stack        F I       +
"""


def _read() -> dict[str, Composed]:
    found: dict[str, Composed] = {}
    for line in FACTS.strip().splitlines():
        words = line.split()
        if not words:
            continue
        at = next(i for i, word in enumerate(words) if word in "+-.")
        flow = {"+": "yes", "-": "no", ".": ""}[words[at]]
        kinds, shapes = " ".join(words[1:at]), " ".join(words[at + 1 :])
        found[words[0]] = Composed(kinds, flow, shapes)
    return found


COMPOSED = _read()


def composed(section: str, name: str) -> Composed | None:
    """What is known of a function, which may mean another thing in every section."""
    return COMPOSED.get(f"{section}.{name}") or COMPOSED.get(name)
