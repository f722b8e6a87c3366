# %% [markdown] tags=["goals"]
# # 4.9 · Config
#
# After this chapter you can
#
# - define every setting of a module or a run, with defaults, in one place;
# - make the module from it, save it beside the results, and read it years later;
# - exchange config files with Burn, in both directions.
#
# About 20 minutes. You should have read [chapter 3.1](03_1_model.ipynb).

# %% tags=["setup", "rust:setup"]
import dataclasses
import enum
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import burnbook
from burnbook import nn
from burnbook.backend import Numpy
from burnbook.config import Config, ConfigEnum, holding, unit
from burnbook.module import Module
from burnbook.optim import AdamConfig, WeightDecayConfig
from burnbook.grad_clipping import GradientClippingConfig
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Bars

burnbook.seed(0)
folder = Path("artifacts/config")
shutil.rmtree(folder, ignore_errors=True)

# %% [markdown]
# ## Try it
#
# Two numbers that must be given, and one with a default.


# %% tags=["run-me", "cell:declare", "rust:declare"]
class MyModuleConfig(Config):
    d_model: int
    d_ff: int
    dropout: float = 0.1


# %% tags=["run-me", "cell:use", "rust:use"]
config = MyModuleConfig(512, 2048)
print(config.d_model)
print(config.d_ff)
print(config.dropout)
config = config.with_dropout(0.2)
print(config.dropout)
config.save(folder / "config.json")

# %% [markdown]
# `with_dropout` made another config; the first one is unchanged. So the config that a
# model was made from stays as it was.
#
# ## By hand
#
# A function with default values would be enough at first. But who knows in a year which
# defaults it had when the model was trained? So the values are written to a file, all
# of them, including those that were left at their defaults:


# %% tags=["run-me"]
@dataclass(frozen=True)
class Plain:
    d_model: int
    d_ff: int
    dropout: float = 0.1


plain = Plain(512, 2048, dropout=0.2)
text = json.dumps(dataclasses.asdict(plain), indent=2)
print(text)
same(Plain(**json.loads(text)) == plain, True)

# %% [markdown]
# ## In burnbook

# %% tags=["run-me", "rust:load"]
same((folder / "config.json").read_text(), text)
print(MyModuleConfig.load(folder / "config.json"))

# %% [markdown]
# The file is the same. What `Config` adds is the rest of this chapter: it checks types,
# reads nested configs, and explains what does not fit.
#
# ## A config makes its module
#
# Give the config a method `init` that takes a device. Then whoever has the config can
# make the module.


# %% tags=["run-me", "cell:init", "rust:init"]
class MyModule(Module):
    linear: nn.Linear
    dropout: nn.Dropout


def init(self, device):
    return MyModule(
        linear=nn.LinearConfig(self.d_model, self.d_ff).init(device),
        dropout=nn.DropoutConfig(self.dropout).init(),
    )


MyModuleConfig.init = init  # in a program: a method of the class

# %% tags=["run-me", "cell:init-use", "rust:init-use"]
device = Numpy()
my_module = config.init(device)
print(my_module)

# %% [markdown]
# ## See it
#
# A config is a point in the space of all models you might build. `init` draws and
# allocates nothing, so you can explore that space at no cost.

# %% tags=["widget"]
widths = [256, 512, 1024, 2048]
models = [MyModuleConfig(512, width).init(device) for width in widths]
params = {
    f"d_ff {width}": model.num_params() / 1000
    for width, model in zip(widths, models, strict=True)
}
Bars(params, "Parameters, in thousands")

# %% [markdown]
# ## What a field may be
#
# | field | in the JSON |
# |---|---|
# | `int`, `float`, `bool`, `str` | `3`, `0.00001`, `true`, `"text"` |
# | `X \| None` | `null`, or as X; it starts as `None` |
# | `list[X]`, `tuple[X, ...]`, `set[X]` | `[…]` |
# | `dict[str, X]`, also with numbers or enum members as keys | `{…}` |
# | an enum | `"FAST"`, the name of the member |
# | a choice (`ConfigEnum`) | `"Valid"` or `{"Explicit": [1, 1]}` |
# | a config, or any dataclass | `{…}` |
# | `Path` | `"runs/one"` |
#
# So a config holds configs: those of layers, of models, of optimizers.


# %% tags=["run-me", "rust:run-config"]
class Schedule(enum.Enum):
    CONSTANT = 1
    NOAM = 2


class RunConfig(Config):
    model: MyModuleConfig
    optimizer: AdamConfig
    classes: dict[int, str]
    note: str | None
    schedule: Schedule = Schedule.CONSTANT
    sizes: tuple[int, int] = (28, 28)
    learning_rate: float = 1e-5


# %% tags=["run-me", "rust:run-config-use"]
adam = AdamConfig().with_weight_decay(WeightDecayConfig(5e-5))
adam = adam.with_grad_clipping(GradientClippingConfig.Norm(1.0))
run = RunConfig(config, adam, {0: "cat", 1: "dog"})
run = run.with_schedule(Schedule.NOAM).with_note("the first")
print(run)

# %% [markdown]
# Read it from the top: first the required fields, then the optional ones, then those with
# a default; 0.00001 and not 1e-05; the choice `Norm` with its value. That is exactly
# what Burn writes and reads.
#
# In Python it prints as Python.

# %% tags=["run-me"]
run.optimizer

# %% [markdown]
# ## A choice
#
# In Rust an enum is one of several variants, and a variant may hold values. This is how
# to declare one; layers use them for padding and initializers.


# %% tags=["run-me", "rust:pooling"]
class Pooling(ConfigEnum):
    Mean = unit()
    Window = holding(int, int)
    Learned = holding(heads=int, temperature=float)


class HeadConfig(Config):
    pooling: Pooling = Pooling.Mean


# %% tags=["run-me", "rust:pooling-use"]
for choice in (
    Pooling.Mean,
    Pooling.Window(2, 3),
    Pooling.Learned(heads=4, temperature=0.5),
):
    text = str(HeadConfig(pooling=choice))
    print(" ".join(text.split()))
    assert HeadConfig.from_json(text).pooling == choice

# %% tags=["run-me"]
choice = Pooling.Learned(heads=4, temperature=0.5)
print(choice.variant, choice.heads, choice.values)

# %% [markdown]
# ## Reading what others wrote
#
# This is from the `config.json` of an optimizer that Burn 0.15 saved:

# %% tags=["run-me", "rust:from-json"]
from_burn = """{"weight_decay": {"penalty": 0.00005},
 "grad_clipping": null, "beta_1": 0.9, "beta_2": 0.999,
 "epsilon": 0.00001}"""
AdamConfig.from_json(from_burn)

# %% [markdown]
# A file may be older than your class. A field that it lacks gets its default, and an
# optional one is `None`:

# %% tags=["run-me"]
MyModuleConfig.from_json('{"d_model": 8, "d_ff": 32}')

# %% [markdown]
# ## Rules between fields
#
# Types say what a single value may be. Which values are valid *together* is up to
# `validate`; it is called whenever a config is made, changed or read. So a config that
# exists is valid.


# %% tags=["run-me", "rust:heads"]
class AttentionConfig(Config):
    d_model: int
    n_heads: int = 4

    def validate(self):
        if self.d_model % self.n_heads:
            text = f"{self.n_heads} heads cannot share {self.d_model}"
            raise ValueError(text)


try:
    AttentionConfig(32).with_n_heads(5)
except ValueError as error:
    print(error)

# %% [markdown]
# ## Compare
#
# Configs are equal when their values are, and can be keys of a dict if their values can.
# To see what changed between two runs, compare two trees:


# %% tags=["run-me"]
def differences(a, b, path=""):
    for name, old in a.items():
        new, place = b[name], f"{path}.{name}".strip(".")
        if isinstance(old, dict) and isinstance(new, dict):
            yield from differences(old, new, place)
        elif old != new:
            yield f"{place}: {old} → {new}"


other = run.with_learning_rate(1e-3).with_sizes((32, 32))
trees = [json.loads(one.to_json()) for one in (run, other)]
list(differences(*trees))

# %% [markdown]
# ## Look inside
#
# The library's own configs are such classes, too:

# %% tags=["peek"]
peek(nn.DropoutConfig)

# %% [markdown]
# ## Where it breaks
#
# A misspelled name, a string instead of a number, a missing field: everything that is
# wrong is in one list, so you need to edit the file only once.

# %% tags=["raises-exception"]
MyModuleConfig.from_json('{"d_model": "512", "d_fff": 8, "dropuot": 0.1}')

# %% [markdown]
# Values that you give are checked in the same way, before any layer sees them:

# %% tags=["raises-exception"]
run.with_sizes((28, 28, 3))

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 4.9.1: the names in the JSON of this config, in their order:
# dropout: float = 0.1 · d_model: int · note: str | None · bias: bool
answer = ...  # a list of names
check("4.9.1", answer)

# %% tags=["solution"]
answer = ["d_model", "bias", "note", "dropout"]
check("4.9.1", answer)


# %% tags=["exercise"]
# exercise 4.9.2: width, and depth, which is 2 unless it is given; validate
# raises a ValueError for a depth below 1
class StackConfig(Config): ...


answer = ...  # StackConfig
check("4.9.2", answer)


# %% tags=["solution"]
class StackConfig(Config):
    width: int
    depth: int = 2

    def validate(self):
        if self.depth < 1:
            raise ValueError(f"a stack of {self.depth} layers")


answer = StackConfig
check("4.9.2", answer)


# %% tags=["exercise"]
# exercise 4.9.3: a choice whose JSON is "Off" or {"Smooth": 0.1} or
# {"Mix": {"alpha": 0.2, "classes": 10}}
class Labels(ConfigEnum): ...


answer = ...  # Labels
check("4.9.3", answer)


# %% tags=["solution"]
class Labels(ConfigEnum):
    Off = unit()
    Smooth = holding(float)
    Mix = holding(alpha=float, classes=int)


answer = Labels
check("4.9.3", answer)

# %% tags=["exercise"]
# exercise 4.9.4: every config of RunConfig's kind for the rates 1e-2, 1e-3,
# 1e-4 and the sizes (28, 28), (32, 32), rate by rate
answer = ...  # a list of six, made from run
check("4.9.4", answer)

# %% tags=["solution"]
answer = [
    run.with_learning_rate(rate).with_sizes((size, size))
    for rate in (1e-2, 1e-3, 1e-4)
    for size in (28, 32)
]
check("4.9.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why does the file hold defaults that were not changed?</summary>
#
# The next version of the program may have others. The file says what this run used.
# </details>
#
# <details><summary>Which fields have no <code>with_…</code> method?</summary>
#
# Those that must be given, because they have no default to change.
# </details>
#
# <details><summary>A file has a field that the class does not know. What happens?</summary>
#
# An error that names it, and the field that was probably meant. Ignoring it would mean
# training with a default instead of the misspelled value.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: derive, once more</b></summary>
#
# `#[derive(Config)]` writes a constructor, builder methods, `save` and `load` at compile
# time. Here a base class does it when the class is defined: it turns the annotations
# into a frozen dataclass. Fields with a default are given by name, so
# `dropout: float = 0.1` may come before a field without one. A name that is a keyword of
# Python, or a method of `Config`, gets an underscore: `lambda_` is `lambda` in the JSON.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - A config holds every setting of a module or a run, typed, with defaults.
# - It never changes; `with_…` gives another one.
# - `config.init(device)` makes the module; nothing is drawn until it is used.
# - `save` and `load` use Burn's JSON; enums are names, or names with values.
# - Everything that does not fit is reported together, before anything runs.
#
# **Where this lives.** Everything is in `burnbook/config`. Read
# `burnbook/config/config.py` first, then `burnbook/config/choice.py`. The exercises of
# chapters 4.9 to 4.11 and 6 are in `widgets/burnbook_widgets/chapters/records.py`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `class MyModuleConfig(Config)` | `#[derive(Config)] pub struct MyModuleConfig` | the same |
# | `dropout: float = 0.1` | `#[config(default = 0.1)] dropout: f64` | the same |
# | `note: str \| None` | `note: Option<String>` | the same |
# | `MyModuleConfig(512, 2048)` | `MyModuleConfig::new(512, 2048)` | the same |
# | `config.with_dropout(0.2)` | `config.with_dropout(0.2)` | the same |
# | `config.save(path)` | `config.save(path).unwrap()` | the same |
# | `MyModuleConfig.load(path)` | `MyModuleConfig::load(path)?` | the same |
# | `MyModuleConfig.load_binary(data)` | `MyModuleConfig::load_binary(&data)?` | the same |
# | `class Pooling(ConfigEnum)` | `#[derive(Config, …)] pub enum Pooling` | the same |
#
# Next: [4.10 · Record](04_10_record.ipynb)
