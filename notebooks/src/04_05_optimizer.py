# %% [markdown] tags=["goals"]
# # 4.5 · Optimizer
#
# After this chapter you can
#
# - say what an optimizer remembers about a parameter, and write Adam by hand;
# - choose and configure one: momentum, decay, clipping, groups of parameters;
# - save an optimizer and resume as if nothing had happened, or write your own.
#
# About 30 minutes. You should have read [chapter 4.3](04_03_autodiff.ipynb) and
# [chapter 4.4](04_04_module.ipynb).

# %% tags=["setup", "rust:setup"]
from dataclasses import dataclass

import numpy as np

import burnbook
from burnbook import grad_clipping, nn, optim
from burnbook.backend import Autodiff
from burnbook.backend import Numpy
from burnbook.module import Module, Param
from burnbook.optim import GradientsParams, ParamGroup
from burnbook.tensor import Tensor
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Lines

burnbook.seed(0)

# %% [markdown]
# ## Try it
#
# A loss like a narrow valley: steep across, almost flat along. Its minimum is at 0, 0.

# %% tags=["run-me", "rust:valley"]
device = Autodiff(Numpy())


class Valley(Module):
    place: Param  # a matrix of one row

    def forward(self):
        steepness = Tensor[2].from_floats([[1.0, 25.0]], device)
        square = self.place.val() * self.place.val()
        return (square * steepness).sum() * 0.5


start = Tensor[2].from_floats([[4.0, 1.0]], device)
valley = Valley(place=Param.from_tensor(start))
valley.forward().into_scalar()

# %% [markdown]
# A step needs three things: the learning rate, the module and its gradients by
# parameter. It returns a new module; the given one stays as it was.


# %% tags=["run-me", "rust:adam"]
def slopes(model):
    return GradientsParams.from_grads(model.forward().backward(), model)


adam = optim.AdamConfig().init()
moved = adam.step(0.1, valley, slopes(valley))
for model in (valley, moved):
    print(np.asarray(model.place.val()).round(2))

# %% [markdown]
# Along the valley the slope is 4; across it is 25. Adam moved by 0.1 in both directions:
# it uses the direction of a gradient, and its size only *relative to the usual size*.
#
# ## By hand
#
# Adam keeps running averages of the gradient $g$ and of its square. Averages that start
# at zero are too small at first; dividing by $1-\beta^t$ corrects that.
#
# $$m \leftarrow \beta_1 m + (1-\beta_1)\, g \qquad v \leftarrow \beta_2 v + (1-\beta_2)\, g^2
# \qquad w \leftarrow w - \eta\, \frac{m / (1-\beta_1^t)}{\sqrt{v / (1-\beta_2^t)} + \epsilon}$$

# %% tags=["run-me"]
w, m, v = np.array([[4.0, 1.0]]), 0.0, 0.0
for t in range(1, 31):
    g = w * [1.0, 25.0]
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    usual = np.sqrt(v / (1 - 0.999**t))
    w = w - 0.1 * m / (1 - 0.9**t) / (usual + 1e-5)

# %% [markdown]
# ## In burnbook


# %% tags=["run-me", "rust:walk"]
def walk(optimizer, lr, steps, model=valley):
    losses = []
    for _ in range(steps):
        losses.append(model.forward().into_scalar())
        model = optimizer.step(lr, model, slopes(model))
    return model, losses


found, losses = walk(optim.AdamConfig().init(), 0.1, 30)
same(w, found.place.val())

# %% [markdown]
# ## See it
#
# Plain SGD has one rate for all directions: the steep one allows only small steps, the
# flat one needs large ones. Momentum accumulates what the steps have in common; Adam
# scales each direction.

# %% tags=["widget"]
momentum = optim.MomentumConfig()
nesterov = momentum.with_nesterov(True)
compared = {
    "Sgd": walk(optim.SgdConfig().init(), 0.02, 60)[1],
    "with momentum": walk(
        optim.SgdConfig().with_momentum(momentum).init(), 0.02, 60
    )[1],
    "Adam": walk(optim.AdamConfig().init(), 0.2, 60)[1],
}
Lines(compared, "Loss of 60 steps", x_label="step", y_label="loss")

# %% [markdown]
# ## All of them
#
# Each is made from a config. The learning rate is not part of it: it is given to every
# step, so nothing in the optimizer has to change when the rate does.
#
# | config | remembers | good for |
# |---|---|---|
# | `SgdConfig` | nothing, or a velocity | large datasets, with a tuned rate |
# | `AdaGradConfig` | the sum of squares | rare features |
# | `RmsPropConfig` | a running mean of squares | objectives that change during training |
# | `AdamConfig`, `AdamWConfig` | running means of gradient and square | nearly everything; try it first |
# | `AdanConfig` | these, and how the gradient changes | large models, many steps |
# | `LionConfig` | a running mean of gradients | large models; a tenth of Adam's rate |
# | `LambConfig` | as Adam | very large batches |
# | `AdafactorConfig` | means of rows and columns of squares | little memory |
# | `MuonConfig` | a velocity | the matrices inside a network |
# | `LBFGSConfig` | the last steps | small problems, all data at once |

# %% tags=["run-me"]
configs = {
    "Sgd": (optim.SgdConfig(), 0.03),
    "momentum": (optim.SgdConfig().with_momentum(momentum), 0.01),
    "nesterov": (optim.SgdConfig().with_momentum(nesterov), 0.01),
    "AdaGrad": (optim.AdaGradConfig(), 1.0),
    "RmsProp": (optim.RmsPropConfig().with_centered(True), 0.02),
    "Adam": (optim.AdamConfig(), 0.1),
    "amsgrad": (optim.AdamConfig().with_amsgrad(True), 0.1),
    "AdamW": (optim.AdamWConfig(), 0.1),
    "Adan": (optim.AdanConfig(), 0.1),
    "Lion": (optim.LionConfig(), 0.03),
    "Lamb": (optim.LambConfig(), 0.03),
    "Adafactor": (optim.AdafactorConfig(), 0.1),
    "Muon": (optim.MuonConfig(), 0.04),
}

# %% tags=["run-me", "rust:all"]
for name, (config, lr) in configs.items():
    found, _ = walk(config.init(), lr, 300)
    good = found.forward().into_scalar() < 0.1
    print(f"{name:9} loss < 0.1", "✔" if good else "✘")

# %% [markdown]
# The defaults are Burn's, and some differ from PyTorch's: ε is 1e-5, momentum has a
# dampening of 0.1, AdamW decays by 1e-4, and RmsProp has momentum. A config prints and
# saves like any other.

# %% tags=["run-me"]
print(optim.AdamWConfig().with_cautious_weight_decay(True))

# %% [markdown]
# ## L-BFGS
#
# It estimates the curvature from its last steps, and within one step it needs the loss at
# several points. So it takes a function that computes the loss, and does not work with
# the learner.


# %% tags=["run-me"]
def closure(model):
    loss = model.forward()
    return loss, GradientsParams.from_grads(loss.backward(), model)


config = optim.LBFGSConfig().with_line_search_fn(
    optim.LineSearchFn.StrongWolfe
)
found, loss = config.init().step(1.0, valley, closure)
print(f"one step: {loss:.2f} → {found.forward().into_scalar():.5f}")

# %% [markdown]
# ## Parameters without a gradient
#
# A parameter that the loss does not depend on keeps its value and its state. A frozen
# one has no gradient, either.

# %% tags=["run-me", "rust:from_params"]
two = nn.LinearConfig(2, 2).init(device)
x = Tensor[2].from_floats([[1.0, -2.0]], device)
grads = two.forward(x).backward()
only_bias = GradientsParams.from_params(grads, two, [two.bias.id])
after = optim.AdamConfig().init().step(0.1, two, only_bias)
same(two.weight.val(), after.weight.val())
same(two.bias.val() - 0.1, after.bias.val())

# %% [markdown]
# [Chapter 5](05_custom_training_loop.ipynb) does more with such parts, and accumulates
# the gradients of several batches. Those of several devices are summed in one step:

# %% tags=["run-me"]
several = optim.MultiGradientsParams()
for _ in range(2):
    several.add(slopes(valley), device.inner)
print(several)
found = optim.SgdConfig().init().step_multi(0.01, valley, several)
print(np.asarray(found.place.val()).round(4))

# %% [markdown]
# ## Decay and clipping
#
# Weight decay pulls every weight toward zero, which works against overfitting. As L2
# regularization it is added to the gradient (`WeightDecayConfig`); AdamW subtracts it
# separately, so large gradients cannot mask it.
#
# Clipping bounds the gradient of each parameter separately: every element (`Value`), or
# its L2 norm (`Norm`). Clipping comes first, decay second. `GlobalNorm` takes the
# gradients of all parameters as one vector, as PyTorch's `clip_grad_norm_` does, so the
# step keeps its direction; Burn has only the first two.

# %% tags=["run-me", "rust:clipping"]
gradient = Tensor[1].from_floats([3.0, -4.0], Numpy())
for config in (
    grad_clipping.GradientClippingConfig.Value(3.5),
    grad_clipping.GradientClippingConfig.Norm(1.0),
):
    clipped = config.init().clip_gradient(gradient)
    print(config, np.asarray(clipped).round(4))

# %% tags=["run-me", "rust:with-options"]
config = optim.AdamConfig().with_weight_decay(optim.WeightDecayConfig(5e-5))
clipping = grad_clipping.GradientClippingConfig.Norm(1.0)
print(config.with_grad_clipping(clipping).init())

# %% tags=["run-me"]
together = grad_clipping.GradientClippingConfig.GlobalNorm(1.0)
grads = GradientsParams.from_grads(two.forward(x).backward(), two)
print(f"{grads.norm():.3f} {together.init().clip_gradients(grads).norm():.3f}")

# %% [markdown]
# ## Groups of parameters
#
# A group is a set of parameters, described by their ids or paths. It can have an update
# rule and a learning rate of its own. If a parameter is in several groups, the last one
# counts.


# %% tags=["run-me"]
class Network(Module):
    hidden: nn.Linear
    output: nn.Linear

    def forward(self, x):
        return self.output.forward(self.hidden.forward(x).tanh())


layers = nn.LinearConfig(2, 8), nn.LinearConfig(8, 2)
network = Network(*[config.init(device) for config in layers])
biases = ParamGroup.from_predicate("bias")
output = ParamGroup.ids_from_module(network.output)
for path, param in network.named_params():
    print(f"{path:14} {biases.fuse(output).matches(param.id, path)}")

# %% [markdown]
# Muon needs this: it is meant for the matrices inside a network; biases and the last
# layer are left to Adam.

# %% tags=["run-me"]
mixed = optim.MuonConfig().init()
mixed = mixed.with_group(biases.fuse(output), optim.AdamConfig())
rates = optim.ModuleLearningRate(0.02).with_group(biases, 0.001)
grads = GradientsParams.from_grads(network.forward(x).backward(), network)
network = mixed.step(rates, network, grads)
print(mixed.groups[0].rule, mixed.groups[0].members)

# %% [markdown]
# ## Saving and resuming
#
# The record of an optimizer holds the state of each parameter under its id. With it
# loaded, training resumes exactly, to the last bit; without it Adam would start again
# with empty averages.

# %% tags=["run-me", "rust:record"]
steady = optim.AdamConfig().init()
half, _ = walk(steady, 0.1, 10)
record = steady.into_record()
straight, _ = walk(steady, 0.1, 10, half)

resumed = optim.AdamConfig().init().load_record(record)
again, _ = walk(resumed, 0.1, 10, half)
ends = [np.asarray(one.place.val()) for one in (straight, again)]
print(np.array_equal(*ends), resumed)

# %% tags=["run-me"]
((_, held),) = record.items()
print(list(held), list(held["V1"]))
print(list(held["V1"]["Rank2"]["momentum"]))

# %% [markdown]
# ## Your own
#
# Write the rule for one tensor: `step` gets the rate, the tensor, its gradient and the
# previous state (`None` at first), and returns a new tensor and a new state. It changes
# nothing in place. The state is a dataclass, from which its record follows. This is
# Lion, which uses the sign of a running average.


# %% tags=["run-me", "rust:lion"]
@dataclass(frozen=True)
class LionState:
    average: Tensor


class Lion:
    state_type = LionState

    def step(self, lr, tensor, grad, state):
        old = state.average if state else grad.zeros_like()
        direction = (old * 0.9 + grad * 0.1).sign()
        return tensor - direction * lr, LionState(old * 0.99 + grad * 0.01)


# %% tags=["run-me", "rust:lion-use"]
lion = optim.OptimizerAdaptor(Lion())
found, _ = walk(lion, 0.04, 300)
found, _ = walk(lion, 0.004, 300, found)
print("loss < 0.1", "✔" if found.forward().into_scalar() < 0.1 else "✘")
((_, held),) = lion.into_record().items()
print(list(held["V1"]["Rank2"]))

# %% [markdown]
# The adaptor goes through the module, applies clipping and groups, and keeps the states.
# All steps of Lion have the same length, so it needs a smaller rate at the end; that is
# the subject of [chapter 4.7](04_07_lr_scheduler.ipynb).
#
# ## Look inside
#
# The rules of the library are ops, so that a backend can run each in a single pass over
# memory.

# %% tags=["peek"]
peek(optim.AdaGrad)

# %% [markdown]
# ## Where it breaks
#
# What `backward` returns is keyed by tensors. An optimizer needs gradients by parameter:

# %% tags=["raises-exception"]
adam.step(0.1, valley, valley.forward().backward())

# %% [markdown]
# Muon orthogonalizes matrices, and a bias is not a matrix:

# %% tags=["raises-exception"]
grads = GradientsParams.from_grads(network.forward(x).backward(), network)
optim.MuonConfig().init().step(0.02, network, grads)

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 4.5.1: how far does Adam's first step at rate 0.3 move a parameter
# whose gradient is 50? (two decimals)
answer = ...
check("4.5.1", answer)

# %% tags=["solution"]
answer = 0.3
check("4.5.1", answer)

# %% tags=["exercise"]
# exercise 4.5.2: a config: Sgd, Nesterov's momentum of 0.8 without dampening,
# and every element of a gradient between -1 and 1
answer = ...
check("4.5.2", answer)

# %% tags=["solution"]
momentum = optim.MomentumConfig(momentum=0.8, dampening=0.0, nesterov=True)
clipping = grad_clipping.GradientClippingConfig.Value(1.0)
answer = optim.SgdConfig().with_momentum(momentum)
answer = answer.with_gradient_clipping(clipping)
check("4.5.2", answer)

# %% tags=["exercise"]
# exercise 4.5.3: the group of all weights but those of the layer called output
answer = ...
check("4.5.3", answer)

# %% tags=["solution"]
weights = ParamGroup.from_predicate("weight")
answer = weights.exclude(ParamGroup.from_predicate("output"))
check("4.5.3", answer)


# %% tags=["exercise"]
# exercise 4.5.4: a rule called Signs: every number moves by lr against the
# sign of its gradient, and nothing is remembered
class Signs:
    state_type = type(None)

    def step(self, lr, tensor, grad, state):
        return ...


answer = ...  # Signs()
check("4.5.4", answer)


# %% tags=["solution"]
class Signs:
    state_type = type(None)

    def step(self, lr, tensor, grad, state):
        return tensor - grad.sign() * lr, None


answer = Signs()
check("4.5.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why is the learning rate an argument of <code>step</code>?</summary>
#
# It changes from batch to batch. As an argument it is not part of any state, and it can
# come from a schedule, be a rate per group, or a plain number.
# </details>
#
# <details><summary>What is lost if only the model is saved?</summary>
#
# The states: velocities, averages, counts of steps. Training goes on, but unevenly,
# until the running averages have built up again.
# </details>
#
# <details><summary>Does clipping by norm apply to the whole model at once?</summary>
#
# No, to each parameter separately, as in Burn. PyTorch's `clip_grad_norm_` uses the norm
# of all gradients together.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: types of optimizers</b></summary>
#
# In Rust `OptimizerAdaptor<Adam, Model<B>, B>` names rule, model and backend, and
# `config.optimizer.init()` infers them from how it is used. Here an adaptor works for
# any module on any backend: each state is created on the device of its first gradient.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - `model = optimizer.step(lr, model, grads)`; nothing is changed in place.
# - A rule handles one tensor; an adaptor applies it to a module and keeps the states.
# - Without a gradient a parameter and its state stay as they are.
# - Clipping is per parameter, before decay; groups have rules and rates of their own.
# - Records hold the states by parameter id and resume to the last bit.
#
# **Where this lives.** Optimizers are in `burnbook/optim`. Read
# `burnbook/optim/rule.py` first, what a rule is; then `burnbook/optim/sgd.py` and
# `burnbook/optim/adam.py`; `burnbook/optim/adaptor.py` applies a rule to a whole module.
# Clipping is in `burnbook/grad_clipping`. The ops that take the steps:
# `burnbook/ops/optimizer_steps.py`, `burnbook/ops/blocked.py`, `burnbook/ops/lbfgs.py`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `AdamConfig().init()` | `AdamConfig::new().init()` | the same |
# | `model = optimizer.step(lr, model, grads)` | `model = optim.step(lr, model, grads);` | the same |
# | `GradientClippingConfig.Norm(1.0)` | `GradientClippingConfig::Norm(1.0)` | the same |
# | `optimizer.into_record()` | `optim.to_record()` | the same |
# | a rule with `step` and `state_type` | `impl SimpleOptimizer<B>` | the same, without `B` |
# | `AdanConfig`, `MuonConfig`, `LBFGSConfig` | – | the same |
# | `LionConfig`, `LambConfig`, `AdafactorConfig` | – | the same |
# | `with_group(ParamGroup.…, config)` | – | `with_group(ParamGroup::…, optim, clipping)` |
#
# Next: [4.6 · Learner](04_06_learner.ipynb)
