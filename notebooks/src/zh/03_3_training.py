# %% [markdown] tags=["goals", "cell:prose"]
# # 3.3 · 训练
#
# 读完本章，你能够
#
# - 计算损失和它的梯度，并让优化器更新一步；
# - 为模型写出训练步骤和验证步骤；
# - 让学习器去训练，观察它、停下它，并读懂它留下的东西。
#
# 大约需要 30 分钟。请先读[第 3.2 章](../03_2_data.ipynb)（英文）。
# 本页另有[英文版](../03_3_training.ipynb)，以及[适用于新旧各版 Burn 的四个版本](../03_3_training_versions.ipynb)（英文）。

# %% tags=["setup", "rust:setup"]
import shutil
from pathlib import Path

import numpy as np

import burnbook
from burnbook.data import DataLoaderBuilder, DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.examples.guide.model import ModelConfig
from burnbook.nn import CrossEntropyLossConfig
from burnbook.optim import AdamConfig, GradientsParams
from burnbook.prelude import *
from burnbook.record import CompactRecorder
from burnbook.train import (
    AccuracyMetric,
    ClassificationOutput,
    LearnerBuilder,
    LossMetric,
    TrainOutput,
)
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Lines

burnbook.seed(0)

# %% [markdown]
# ## 先试一试
#
# 取一批手写数字，让网络反复地看。每看一遍，优化器就把每个参数沿着梯度的反方向移动一点。三十步就足以看到损失下降。

# %% tags=["run-me"]
device = Autodiff(Numpy())
train_set, test_set = DigitsDataset.train(), DigitsDataset.test()
batch = MnistBatcher(device).batch([train_set.get(i) for i in range(64)])

model = ModelConfig(10, 64).init(device)
optim = AdamConfig().init()
cross_entropy = CrossEntropyLossConfig().init(device)
losses = []
for _ in range(30):
    loss = cross_entropy.forward(model.forward(batch.images), batch.targets)
    grads = GradientsParams.from_grads(loss.backward(), model)
    model = optim.step(1e-3, model, grads)
    losses.append(loss.into_scalar())
print(f"损失 {losses[0]:.1f} → {losses[-1]:.1f}")

# %% [markdown]
# 再看一遍循环里的三个步骤：*前向*计算损失，*反向*计算损失的梯度，*更新*得到更好的模型。旧的模型没有变，只是 `model` 这个名字现在指向新的模型。
#
# ## 手工计算
#
# 最后一层为每个类别给出一个数，称为 *logits*，记作 $z$。softmax 把它们变成概率；如果一张图像的真实类别 $t$ 分到的概率很小，它的损失就很大：
#
# $$L = -\log\frac{e^{z_t}}{\sum_j e^{z_j}} = \log\sum_j e^{z_j} - z_t$$

# %% tags=["run-me"]
logits = np.array([[2.0, 1.0, 0.1], [0.5, 2.5, 0.0]], dtype=np.float32)
classes = np.array([0, 2])

total = np.log(np.exp(logits).sum(axis=1))
by_hand = (total - logits[[0, 1], classes]).mean()
print(f"{by_hand:.4f}")

# %% [markdown]
# ## 用 burnbook 计算

# %% tags=["run-me", "rust:cross-entropy"]
z = Tensor[2].from_numpy(logits, device).require_grad()
targets = Tensor[1, Int].from_numpy(classes, device)
loss = cross_entropy.forward(z, targets)
same([by_hand], loss)

# %% [markdown]
# `backward()` 返回一个装着梯度的容器，张量从容器里取出自己的那一份。所以两步之间不需要把梯度清零；PyTorch 则把梯度存在张量自己身上，下一次的会加到上面。这个损失的梯度形式很简单：概率，在真实类别处减 1，再除以批次大小。

# %% tags=["run-me", "rust:gradients"]
softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
softmax[[0, 1], classes] -= 1
same(softmax / 2, z.grad(loss.backward()))

# %% [markdown]
# ## 画出来看

# %% tags=["widget", "nbval-ignore-output"]
title = "同一批图像，看三十遍"
Lines({"loss": losses}, title, x_label="步", y_label="损失")

# %% [markdown]
# ## 学习器需要什么
#
# 要让学习器能训练一个模型，模型还得多两个方法。它们返回一个*条目*（item），各种指标从中算出要显示的内容；对分类来说，它就是损失、输出和目标（`ClassificationOutput`）。回归预测的是数值而不是类别，用的是 `RegressionOutput`。在 Rust 里，这些都写在单独的文件 `src/training.rs` 中。
#
# 输出既交给损失，也放进条目。在 Rust 里，函数会拿走交给它的张量，所以要写 `output.clone()`；这并不复制数据，只是说明这个张量后面还要用，因此任何运算都不能占用它的内存。在 Python 里，同一个张量想用几次就用几次。


# %% tags=["run-me"]
def forward_classification(self, images, targets):
    output = self.forward(images)
    loss = (
        CrossEntropyLossConfig().init(output.device()).forward(output, targets)
    )
    return ClassificationOutput(loss, output, targets)


def train_step(self, batch):
    item = self.forward_classification(batch.images, batch.targets)
    return TrainOutput(self, item.loss.backward(), item)


def valid_step(self, batch):
    return self.forward_classification(batch.images, batch.targets)


# %% tags=["run-me"]
from burnbook.examples.guide.model import Model

Model.forward_classification = forward_classification
Model.train_step = train_step
Model.valid_step = valid_step

model.train_step(batch)

# %% [markdown]
# 只有训练步骤计算梯度，并把梯度和条目一起放进 `TrainOutput` 返回。学习器验证时用的是 `model.valid()`，即去掉了自动微分的同一个模型：那里没有 `backward`，dropout 也是关闭的。因此不会因为疏忽而在验证时还算着梯度。Rust 用类型表达同样的意思：`TrainStep` 要求 `AutodiffBackend`，`ValidStep` 只要求任意一个 `Backend`。
#
# ## 一次训练的配置
#
# 一个配置包含一次训练的全部设置，并和结果保存在一起。


# %% tags=["run-me", "rust:training-config"]
class TrainingConfig(Config):
    model: ModelConfig
    optimizer: AdamConfig
    num_epochs: int = 10
    batch_size: int = 64
    num_workers: int = 4
    seed: int = 42
    learning_rate: float = 1e-4


config = TrainingConfig(ModelConfig(10, 64), AdamConfig())
config = config.with_num_workers(2).with_learning_rate(1e-3)
print(config.num_epochs, "轮，学习率", config.learning_rate)

# %% [markdown]
# 结果放进一个文件夹，称为*产物目录*（artifact directory）。开始之前先清空它，这样里面的东西都来自同一次训练。


# %% tags=["run-me", "rust:artifact-dir"]
def create_artifact_dir(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


artifacts = Path("artifacts/training")
create_artifact_dir(artifacts)
config.save(artifacts / "config.json")
device.seed(config.seed)
print((artifacts / "config.json").read_text()[:60], "…")


# %% [markdown]
# 两个加载器都按种子打乱顺序。用于验证的那个在内层后端上生成批次，不带梯度。


# %% tags=["run-me"]
def loader(dataset, device):
    builder = DataLoaderBuilder(MnistBatcher(device))
    builder = builder.batch_size(config.batch_size).shuffle(config.seed)
    return builder.num_workers(config.num_workers).build(dataset)


train_loader = loader(train_set, device)
valid_loader = loader(test_set, device.inner)
len(list(train_loader))

# %% [markdown]
# ## 学习器
#
# 构建器接收训练和验证各用的指标、保存检查点的记录器、训练的轮数，以及结束时要不要打印汇总表；`build` 接收模型、优化器和学习率。学习率不属于优化器，而是在每一步时交给它，所以也可以换成一个学习率调度器。

# %% tags=["run-me"]
learner = (
    LearnerBuilder(artifacts)
    .metric_train_numeric(AccuracyMetric())
    .metric_valid_numeric(AccuracyMetric())
    .metric_train_numeric(LossMetric())
    .metric_valid_numeric(LossMetric())
    .with_file_checkpointer(CompactRecorder())
    .devices([device])
    .num_epochs(config.num_epochs)
    .build(
        config.model.init(device),
        config.optimizer.init(),
        config.learning_rate,
    )
)

# %% [markdown]
# 现在开始训练。`await` 让页面在这段时间里保持响应：曲线在动，Stop（停止）和 Pause（暂停）按钮点了马上有反应。`learner.fit(...)` 做的是同样的事，但要等训练完才响应点击。

# %% tags=["run-me", "cell:code"]
trained = await learner.fit_async(train_loader, valid_loader)

# %% tags=["run-me", "nbval-ignore-output"]
history = learner.result.history
accuracy = [mean for _, mean in history.epochs("Accuracy", "valid")]
print(f"第 1 轮之后，在没见过的数字上的准确率：{accuracy[0]:.0f} %")
print(f"第 {len(accuracy)} 轮之后：{accuracy[-1]:.0f} %")

# %% [markdown]
# `trained` 是训练结束时的模型。用半精度保存它：对权重来说足够了，而且文件格式与 Burn 自己写出的完全一样：MessagePack，小数存为 `f16`，整数存为 `i16`。别的记录器可以写成 BinCode 或 JSON，压缩或不压缩；无论用什么精度计算，每个后端都能读出它们写下的内容。

# %% tags=["run-me"]
trained.save_file(artifacts / "model", CompactRecorder())
for path in sorted(artifacts.iterdir()):
    print(path.name)

# %% [markdown]
# 文件夹里有配置、这次训练的日志、训练和验证各一个存放指标值的文件夹、最近的几个检查点，以及模型。中断了的训练可以用 `LearnerBuilder(…).checkpoint(epoch)` 接着进行。加上 `.summary()`，学习器会像书中那样，在结束时打印一张表，列出最好和最差的轮次。
#
# ## 查看历史
#
# `history` 以列表给出一次训练的数字；画成 plotly 图，就可以放大，可以逐点读数。

# %% tags=["run-me"]
from burnbook_widgets import history_figure

history_figure(history)

# %% [markdown]
# ## 看看内部

# %% tags=["peek"]
peek(ClassificationOutput)

# %% [markdown]
# ## 哪里会出错
#
# 没有自动微分，损失的计算过程就没有记录。错误信息会告诉你该怎么办。

# %% tags=["raises-exception"]
plain = Numpy()
numbers = Tensor[1].from_floats([1.0, 2.0], plain)
(numbers * numbers).sum().backward()

# %% [markdown]
# ## 练习
#
# [答案](#答案)在本页末尾，请先自己动手。

# %% tags=["exercise"]
# 练习 3.3.1：如果模型认为十个类别的可能性完全相同，损失是多少？
answer = ...
check("3.3.1", answer)

# %% tags=["solution"]
answer = float(np.log(10))
check("3.3.1", answer)

# %% tags=["exercise"]
# 练习 3.3.2：目标为 [0, 1, 1] 时，下面这些 logits 的准确率是百分之几？
scores = Tensor[2].from_floats([[3.0, 1.0], [0.2, 0.1], [0.0, 5.0]], Numpy())
answer = ...
check("3.3.2", answer)

# %% tags=["solution"]
answer = 100 * 2 / 3
check("3.3.2", answer)

# %% tags=["exercise"]
# 练习 3.3.3：用 backward 求 Σ x³ 在 x = [1, 2, 3] 处的梯度
cubes = Tensor[1].from_floats([1.0, 2.0, 3.0], device).require_grad()
answer = ...
check("3.3.3", answer)

# %% tags=["solution"]
answer = cubes.grad((cubes * cubes * cubes).sum().backward())
check("3.3.3", answer)

# %% tags=["exercise"]
# 练习 3.3.4：上面的训练里，优化器一共走了多少步？
answer = ...
check("3.3.4", answer)

# %% tags=["solution"]
answer = config.num_epochs * len(list(train_loader))
check("3.3.4", answer)

# %% [markdown] tags=["recall"]
# ## 回顾
#
# <details><summary>为什么要在模型没有训练过的图像上验证？</summary>
#
# 模型可以把训练图像背下来（*过拟合*）。只有新的图像才能看出它是否真的学会了识别数字。
# </details>
#
# <details><summary>调用 <code>backward()</code> 之后，梯度在哪里？</summary>
#
# 在它返回的容器里。张量自己不保存梯度，所以也不会有梯度残留下来。
# </details>
#
# <details><summary>训练准确率比验证准确率低。为什么？</summary>
#
# 训练时 dropout 是打开的；而且训练的值是整整一轮的平均，在这一轮里模型还在不断变好。
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python 说明：后来添加的方法</b></summary>
#
# 在 Rust 里，可以用好几个 `impl` 块给同一个结构体添加方法。在 Python 里，把一个函数赋给类，它就成了类的方法；本章这样做，是为了一次只介绍一个方法。在正式的项目里，请把它们写在类里面，就像 `burnbook/examples/guide/model.py` 和 `training.py` 那样。
# </details>
#
# <details><summary><b>🐍 Python 说明：一个步骤接受哪些类型</b></summary>
#
# 在 Rust 里，编译器要求 `train_step` 的输出能够转换成每个指标的输入。在这里，由指标在构建学习器时或处理第一批数据时检查条目能否转换；如果不能，错误信息会指出是哪个指标、它需要什么类型。
# </details>
#
# <details><summary><b>🐍 Python 说明：await</b></summary>
#
# 一个单元格要运行完，页面才能响应点击。遇到 `await`，它就暂停，训练在另一个线程里继续进行，有了结果再接着运行。
# </details>

# %% [markdown]
# <details><summary><b>📖 本页的四个版本</b></summary>
#
# 随着 Burn 的发展，书里的这一页也改写过几次。你在别处找到的代码，可能依据其中任何一个版本：
#
# | 版本 | 新的变化 |
# |---|---|
# | 0.11 及以前 | `CrossEntropyLoss::new(None)`、`MNISTBatcher`；创建模型时不需要设备 |
# | 0.15 | `init(&device)`；先清空文件夹；学习器最后打印汇总表 |
# | 0.17 | `batch(items, device)`：一个批处理器服务所有设备 |
# | 0.19 | `fit` 返回一个结果，模型在其中 |
# | 0.20 起 | `SupervisedTraining::new(dir, train, valid)….launch(learner)` |
#
# [单独的一页](../03_3_training_versions.ipynb)（英文）上有每个版本的完整代码，都可以运行；它们给出的数字逐位相同。
# </details>

# %% [markdown] tags=["summary"]
# ## 小结
#
# - 前向计算损失，反向计算梯度，更新一步得到更好的模型。
# - `train_step` 和 `valid_step` 告诉学习器怎样处理一批数据。
# - 学习器还提供曲线、日志、检查点、断点续训，并且可以随时正常停止。
# - 和结果保存在一起的配置，说明结果是怎样得到的。
# - 这里和书里一样，把测试集用作验证集；实际工作中还要另留一个数据集用于最终测试。
#
# **代码在哪里。** `burnbook/examples/guide/training.py` 和 `burnbook/train/output.py`。
#
# **在 Burn 中的写法**
#
# | 这里 | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `train_step(batch)` | `TrainStep::step` | 相同，用关联类型 |
# | `valid_step(batch)` | `ValidStep::step` | `InferenceStep::step` |
# | `TrainOutput(self, loss.backward(), item)` | `TrainOutput::new(self, item.loss.backward(), item)` | 相同 |
# | `LearnerBuilder(dir)….build(model, optim, lr)` | `LearnerBuilder::new(dir)….build(model, optim, lr)` | `SupervisedTraining::new(dir, train, valid)…` |
# | `learner.fit(train, valid)` | `learner.fit(train, valid)` | `.launch(Learner::new(model, optim, lr))` |
# | `optim.step(lr, model, grads)` | `optim.step(lr, model, grads)` | 相同 |
#
# 下一章：[3.4 · 后端](../03_4_backend.ipynb)（英文）
