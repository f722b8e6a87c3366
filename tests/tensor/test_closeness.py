"""The closeness report: the book's text, HTML, data."""

import sys

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.module import Module, Param
from burnbook.tensor import Tensor
from burnbook.tensor.closeness import RULE, Level, check_closeness

ONE = [1.0, 2.0, 3.0, 4.0, 5.0, 6.001, 7.002, 8.003, 9.004, 10.1]
TWO = [1.0, 2.0, 3.0, 4.000, 5.0, 6.0, 7.001, 8.002, 9.003, 10.004]
COUNTS = [10, 10, 9, 6, 5, 5, 5, 5]


def book():
    return check_closeness(Tensor[1].from_floats(ONE), Tensor[1].from_floats(TWO))


def block(power, close, verdict, sentence):
    count = f"{close}/10 ({close * 10}.00%)"
    return [f"Epsilon: 1e-{power}", f"  Close elements: {count}",
            f"  [{verdict}] {sentence}", ""]  # fmt: skip


def test_the_example_of_the_book_gives_its_report():
    lines = ["Tensor Closeness Check Results:", "==============================="]
    lines += block(1, 10, "PASS", "All elements are within tolerance")
    lines += block(2, 10, "PASS", "All elements are within tolerance")
    lines += block(3, 9, "WARN", "Most elements are within tolerance")
    lines += block(4, 6, "FAIL", "Significant differences detected")
    for power in (5, 6, 7, 8):
        lines += block(power, 5, "FAIL", "Significant differences detected")
    lines += ["Closeness check complete."]
    assert str(book()) == "\n".join(lines)
    assert repr(book()) == str(book())


def test_only_headings_are_bold_and_only_tags_are_colored():
    lines = book().text(color=True).splitlines()
    assert lines[0] == "\x1b[1mTensor Closeness Check Results:\x1b[0m"
    assert lines[2] == "\x1b[1mEpsilon:\x1b[0m 1e-1"
    assert lines[4] == "  \x1b[32m[PASS]\x1b[0m All elements are within tolerance"
    assert lines[12] == "  \x1b[33m[WARN]\x1b[0m Most elements are within tolerance"
    assert lines[16] == "  \x1b[31m[FAIL]\x1b[0m Significant differences detected"
    assert lines[-1] == "\x1b[1mCloseness check complete.\x1b[0m"
    assert lines[1] == RULE


@pytest.mark.parametrize(
    ("terminal", "variable", "colored"),
    [(True, None, True), (True, "1", False), (False, None, False), (True, "", True)],
)
def test_colors_are_for_terminals_that_want_them(
    monkeypatch, terminal, variable, colored
):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if variable is not None:
        monkeypatch.setenv("NO_COLOR", variable)
    assert ("\x1b[" in str(book())) is colored


def test_the_data_are_plain_dicts():
    data = book().data
    assert [row["close"] for row in data] == COUNTS
    assert data[2] == {
        "epsilon": 1e-3,
        "close": 9,
        "total": 10,
        "percent": 90.0,
        "verdict": "WARN",
    }
    assert book().level(1e-3).verdict == "WARN"
    assert book().within == 1e-2
    assert book().place == (9,)
    assert np.isclose(book().largest, 0.096, atol=1e-5)


def test_html_says_everything_without_color_and_takes_the_page_colors():
    html = book()._repr_html_()
    for words in ("✓ PASS", "! WARN", "✗ FAIL", "1e-8", "9/10", "90.00%", "at [9]"):
        assert words in html
    assert "color:#" not in html
    assert "currentColor" in html
    assert html == book()._repr_html_()


def test_backends_arrays_and_lists_compare_with_each_other():
    a = Tensor.from_data(ONE, Autodiff(Numpy())).require_grad()
    for other in (
        Tensor.from_data(ONE, Numpy(float="f64")),
        np.float32(ONE),
        np.array(ONE),
        ONE,
        a.to_data(),
    ):
        assert check_closeness(a, other).within <= 1e-7


def test_torch_tensors_compare_too():
    torch = pytest.importorskip("torch")
    theirs = torch.tensor(TWO, requires_grad=True)
    assert check_closeness(Tensor.from_floats(ONE), theirs).data == book().data
    half = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    assert check_closeness(half, Tensor.from_floats([1.0, 2.0])).within == 1e-8


def test_nan_is_never_close_and_an_infinity_to_itself_as_with_is_close():
    a, b = np.array([np.nan, np.inf, 1.0]), np.array([np.nan, np.inf, 1.0])
    report = check_closeness(a, b)
    x, y = (Tensor.from_data(values) for values in (a, b))
    same = int(np.asarray(x.is_close(y)).sum())
    assert [row["close"] for row in report.data] == [same] * 8
    assert report.place == (0,)
    assert check_closeness([np.inf], [-np.inf]).level(1e-1).close == 0


def test_nothing_is_close_to_nothing():
    report = check_closeness(np.ones((0, 3)), np.ones((0, 3)))
    assert report.within == 1e-8
    assert "Close elements: 0/0 (100.00%)" in str(report)


class Block(Module):
    layers: list[nn.Linear]
    dropout: nn.Dropout

    def forward(self, x):
        for layer in self.layers:
            x = self.dropout(layer(x))
        return x


def two_blocks():
    layers = [nn.LinearConfig(3, 3).init(Autodiff(Numpy())) for _ in range(2)]
    one = Block(layers, nn.DropoutConfig(0.5).init())
    record = one.into_record()
    weight = np.array(layers[1].weight.val())
    weight[0, 0] += 100
    moved = Block(list(layers), one.dropout)
    weight = Param.from_tensor(Tensor.from_numpy(weight, Autodiff(Numpy())))
    moved.layers[1] = layers[1].replace(weight=weight)
    return one, moved, record


def test_two_modules_are_compared_layer_by_layer():
    one, moved, _ = two_blocks()
    x = Tensor.ones([2, 3], Numpy())
    report = check_closeness(one, moved, x)
    names = ["layers.0", "dropout", "layers.1", "dropout (call 2)", "output"]
    assert [pair.name for pair in report.pairs] == names
    assert report.first_difference == "layers.1"
    assert report["layers.0"].within == 1e-8
    assert report.data[2]["verdict"] == "FAIL"
    lines = str(report).splitlines()
    assert lines[0] == "Layer Closeness Check Results (epsilon 1e-4):"
    assert lines[2].startswith("  [PASS] layers.0          [2, 3]  within 1e-8")
    assert lines[4].startswith(
        "  [FAIL] layers.1          [2, 3]  largest difference 1"
    )
    assert lines[-1] == "The first difference is in layers.1."
    assert "✗ FAIL" in report._repr_html_()
    assert "forward" not in vars(one.layers[0])


def test_the_same_module_on_another_backend_is_close_in_every_layer():
    one, _, _ = two_blocks()
    report = check_closeness(
        one, one.to_device(Numpy(float="f64")), np.ones((2, 3), np.float32)
    )
    assert report.first_difference is None
    assert str(report).splitlines()[-1] == "All 5 are close."


def test_records_and_modules_without_inputs_are_compared_by_parameter():
    one, moved, record = two_blocks()
    for report in (
        check_closeness(record, moved.into_record()),
        check_closeness(one, moved),
    ):
        assert len(report.pairs) == 4
        assert report.first_difference == "layers.1.weight"
        assert report["layers.1.weight"].place == (0, 0)


def test_what_has_no_counterpart_is_named():
    _, _, record = two_blocks()
    shorter = {"layers": record["layers"][:1], "more": record["layers"][1]["bias"]}
    problems = {p.name: p.problem for p in check_closeness(record, shorter).pairs}
    assert problems["layers.1.weight"] == "only in the first"
    assert problems["more"] == "only in the second"
    assert problems["layers.0.weight"] == ""
    other = nn.LinearConfig(3, 4).init(Numpy()).into_record()
    report = check_closeness(nn.LinearConfig(3, 2).init(Numpy()).into_record(), other)
    assert report.pairs[0].problem == "shapes [3, 2] and [3, 4]"
    assert report.first_difference == "weight"
    assert report.data[0]["levels"] == []


def test_modules_with_other_names_are_paired_in_order():
    one, two = nn.LinearConfig(2, 2).init(Numpy()), nn.LinearConfig(2, 2).init(Numpy())
    a = {"first": one.into_record()["weight"]}
    b = {"second": two.into_record()["weight"]}
    assert check_closeness(a, b).pairs[0].name == "first | second"


def test_the_worst_elements_stand_with_their_places_and_both_values():
    a = np.zeros((4, 5))
    b = a.copy()
    b[1, 2], b[3, 0], b[0, 4] = -1.0, 2.0, 1.0
    report = check_closeness(a, b)
    assert [x.place for x in report.worst] == [(3, 0), (0, 4), (1, 2)]
    assert [x.expected for x in report.worst] == [2.0, 1.0, -1.0]
    assert [x.apart for x in report.worst] == [2.0, 1.0, 1.0]
    assert (report.largest, report.place) == (2.0, (3, 0))
    many = check_closeness(np.zeros(100), np.ones(100)).worst
    assert [x.place for x in many] == [(i,) for i in range(8)]  # among equals the first


def test_what_is_not_a_number_is_the_worst():
    a = np.array([3.0, 1.0, np.nan, np.inf])
    worst = check_closeness(a, np.array([3.0, 9.0, 0.0, np.inf])).worst
    assert [x.place for x in worst] == [(2,), (1,)]  # ∞ is close to itself
    assert np.isnan(worst[0].output)
    assert check_closeness(a[:2], a[:2]).worst == ()


def test_dicts_of_arrays_are_compared_name_by_name():
    ours = {"conv": {"weight": np.ones(3)}, "bias": np.zeros(2)}
    theirs = {"conv": {"weight": np.ones(3)}, "bias": np.float32([0, 1])}
    report = check_closeness(ours, theirs)
    assert [pair.name for pair in report.pairs] == ["conv.weight", "bias"]
    assert report.first_difference == "bias"


class Twin(Module):
    first: nn.Linear
    act: nn.Relu
    second: nn.Linear

    def forward(self, x):
        return self.second.forward(self.act.forward(self.first.forward(x)))


def ours_and_torchs():
    """The same small network here and in PyTorch, with the same weights."""
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    config = nn.LinearConfig(4, 4)
    ours = Twin(config.init(Numpy()), nn.Relu(), config.init(Numpy()))

    class Theirs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
            self.drop, self.act = torch.nn.Dropout(0.5), torch.nn.ReLU()

        def forward(self, x):
            return self.second(self.act(self.first(x)))

    theirs = Theirs()
    with torch.no_grad():
        for name in ("first", "second"):
            here, there = getattr(ours, name), getattr(theirs, name)
            there.weight.copy_(torch.tensor(np.array(here.weight.val()).T))
            there.bias.copy_(torch.tensor(np.array(here.bias.val())))
    return torch, ours, theirs


def test_a_module_is_compared_with_one_of_pytorch_layer_by_layer():
    torch, ours, theirs = ours_and_torchs()
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    for given in (x, torch.tensor(x), Tensor.from_numpy(x, Numpy())):
        report = check_closeness(ours, theirs, given)
        assert [pair.name for pair in report.pairs] == [
            "first", "act", "second", "output",
        ]  # fmt: skip
        assert report.first_difference is None
    assert all(layer.training for layer in theirs.modules())
    assert not any(layer._forward_hooks for layer in theirs.modules())
    with torch.no_grad():
        theirs.second.bias += 1
    assert check_closeness(theirs, ours, x).first_difference == "second"
    assert check_closeness(theirs, theirs).first_difference is None
    assert check_closeness(ours, theirs)["first.bias"].within == 1e-8


def test_layers_of_other_names_are_compared_by_their_order():
    torch, ours, theirs = ours_and_torchs()
    plain = torch.nn.Sequential(theirs.first, theirs.act, theirs.second)
    report = check_closeness(ours, plain, np.ones((2, 4), np.float32))
    assert [pair.name for pair in report.pairs] == [
        "first | 0", "act | 1", "second | 2", "output",
    ]  # fmt: skip
    assert report.first_difference is None


def test_a_share_is_never_rounded_to_all_or_to_none():
    """999,998 of 1,000,000 were 100.00 %, beside a WARN and the view's 99.99 %."""
    many = np.zeros(1_000_000, np.float32)
    few = many.copy()
    few[:2] = 1.0
    report = check_closeness(
        Tensor.from_data(many, Numpy()), Tensor.from_data(few, Numpy())
    )
    text = report.text(color=False)
    assert "999998/1000000 (99.99%)" in text
    assert "[WARN]" in text
    assert "(100.00%)" not in text
    assert "99.99%" in report._repr_html_()
    assert Level(1e-3, 1, 1_000_000).percent_text == "0.01%"
    assert Level(1e-3, 0, 10).percent_text == "0.00%"
    assert Level(1e-3, 10, 10).percent_text == "100.00%"


def test_a_report_that_nobody_takes_is_printed_once(capsys):
    """As the book's call does, in a script; what is kept or shown prints nothing."""
    check_closeness(Tensor.from_data(ONE), Tensor.from_data(TWO))
    dropped = capsys.readouterr().out
    report = check_closeness(Tensor.from_data(ONE), Tensor.from_data(TWO))
    assert capsys.readouterr().out == ""
    assert dropped == f"{report}\n"
    print(check_closeness(Tensor.from_data(ONE), Tensor.from_data(TWO)))
    assert capsys.readouterr().out == dropped


def test_it_is_found_where_burn_has_it():
    from burnbook import tensor

    assert tensor.check_closeness is check_closeness
