"""ai.onnx.ml: what comes before and after networks, linear models and trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnbook.importers.onnx.operators.registry import host_operator
from burnbook.importers.onnx.values import Value, as_array

DOMAIN = "ai.onnx.ml"


@host_operator("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor(x: Value, places: Value) -> Any:
    """Columns of the last dim."""
    return np.take(x, places.reshape(-1), -1).reshape(*x.shape[:-1], -1)


@host_operator("Binarizer", domain=DOMAIN)
def binarizer(x: Value, *, threshold: float = 0.0) -> Any:
    """1 above a threshold, 0 elsewhere."""
    return (x > threshold).astype(x.dtype)


@host_operator("Scaler", domain=DOMAIN)
def scaler(
    x: Value, *, offset: Sequence[float] = (), scale: Sequence[float] = ()
) -> Any:
    """(x − offset) scale, by column."""
    wide = x.astype(np.float32)
    wide = wide - np.array(offset or [0.0], np.float32)
    return wide * np.array(scale or [1.0], np.float32)


@host_operator("Normalizer", domain=DOMAIN)
def normalizer(x: Value, *, norm: str = "MAX") -> Any:
    """Rows divided by their largest value, sum or length."""
    wide = x.astype(np.float32)
    sizes = {
        "MAX": wide.max(-1, keepdims=True),
        "L1": np.abs(wide).sum(-1, keepdims=True),
        "L2": np.sqrt((wide * wide).sum(-1, keepdims=True)),
    }[norm]
    return wide / np.where(sizes == 0, np.float32(1), sizes)


@host_operator("Imputer", domain=DOMAIN)
def imputer(
    x: Value,
    *,
    imputed_value_floats: Sequence[float] = (),
    imputed_value_int64s: Sequence[int] = (),
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Any:
    """Other values for what is missing."""
    if x.dtype.kind == "f":
        new, old = np.array(imputed_value_floats, x.dtype), replaced_value_float
        gone = np.isnan(x) if np.isnan(old) else x == np.array(old, x.dtype)
    else:
        new, old = np.array(imputed_value_int64s, x.dtype), replaced_value_int64
        gone = x == old
    return np.where(gone, new, x)


@host_operator("OneHotEncoder", domain=DOMAIN)
def one_hot_encoder(
    x: Value,
    *,
    cats_int64s: Sequence[int] = (),
    cats_strings: Sequence[str] = (),
    zeros: int = 1,
) -> Any:
    """1 at the category of each value, 0 elsewhere."""
    kinds = np.array(list(cats_strings) or list(cats_int64s))
    held = x.astype(str) if cats_strings else x.astype(np.int64)
    return (held[..., None] == kinds).astype(np.float32)


@host_operator("FeatureVectorizer", domain=DOMAIN)
def feature_vectorizer(*parts: Value, inputdimensions: Sequence[int] = ()) -> Any:
    """Columns side by side."""
    wide = [p.reshape(len(p), -1) if p.ndim > 1 else p.reshape(1, -1) for p in parts]
    return np.concatenate(wide, 1).astype(np.float32)


@host_operator("LabelEncoder", domain=DOMAIN)
def label_encoder(
    x: Value,
    *,
    classes_strings: Sequence[str] = (),
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    default_tensor: Value = None,
    keys_floats: Sequence[float] = (),
    keys_int64s: Sequence[int] = (),
    keys_strings: Sequence[str] = (),
    keys_tensor: Value = None,
    values_floats: Sequence[float] = (),
    values_int64s: Sequence[int] = (),
    values_strings: Sequence[str] = (),
    values_tensor: Value = None,
) -> Any:
    """Other values for known ones, a default for the rest."""
    if classes_strings:  # the form of version 1: texts and their numbers
        names = list(classes_strings)
        if x.dtype.kind == "O":
            keys: Any = np.array(names, object)
            values: Any = np.arange(len(names))
        else:
            keys, values = np.arange(len(names)), np.array(names, object)
    else:
        keys = _given(keys_tensor, keys_floats, keys_int64s, keys_strings)
        values = _given(values_tensor, values_floats, values_int64s, values_strings)
    usual: Any = {"f": np.float32(default_float), "O": default_string}.get(
        values.dtype.kind, default_int64
    )
    if default_tensor is not None:
        usual = as_array(default_tensor).reshape(-1)[0]
    table = {
        _key(k): v for k, v in zip(keys.reshape(-1), values.reshape(-1), strict=True)
    }
    found = [table.get(_key(v), usual) for v in x.reshape(-1)]
    return np.array(found, values.dtype).reshape(x.shape)


def _given(tensor: Value, floats: Value, whole: Value, texts: Value) -> Any:
    if tensor is not None:
        return as_array(tensor)
    if texts:
        return np.array(list(texts), object)
    return np.array(floats, np.float32) if floats else np.array(whole, np.int64)


def _key(value: Value) -> Any:
    if isinstance(value, (float, np.floating)) and np.isnan(value):
        return "NaN"
    return value if isinstance(value, str) else float(value)


@host_operator("LinearRegressor", domain=DOMAIN)
def linear_regressor(
    x: Value,
    *,
    coefficients: Sequence[float] = (),
    intercepts: Sequence[float] = (),
    post_transform: str = "NONE",
    targets: int = 1,
) -> Any:
    """A linear function of each row."""
    weight = np.array(coefficients, np.float32).reshape(targets, -1)
    found = x.astype(np.float32) @ weight.T
    found = found + np.array(intercepts or [0.0], np.float32)
    return post_transformed(found, post_transform)


@host_operator("LinearClassifier", domain=DOMAIN, many=True)
def linear_classifier(
    x: Value,
    *,
    classlabels_ints: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    coefficients: Sequence[float] = (),
    intercepts: Sequence[float] = (),
    multi_class: int = 0,
    post_transform: str = "NONE",
    outputs: int = 1,
) -> tuple[Any, ...]:
    """The class with the largest score of each row, and all scores."""
    labels = class_labels(classlabels_ints, classlabels_strings)
    rows = len(coefficients) // x.shape[1]
    weight = np.array(coefficients, np.float32).reshape(rows, -1)
    scores = x.astype(np.float32) @ weight.T
    scores = scores + np.array(intercepts or [0.0], np.float32)
    return _decided(scores, labels, post_transform)


def class_labels(whole: Sequence[int], texts: Sequence[str]) -> Any:
    """The classes, whole numbers or texts."""
    return np.array(list(texts), object) if texts else np.array(whole, np.int64)


def _decided(scores: Value, labels: Value, post_transform: str) -> tuple[Any, ...]:
    """Labels and scores; one score for two classes is that of the second."""
    if scores.shape[1] == 1 and len(labels) == 2:
        one = post_transformed(scores, post_transform)
        if post_transform in ("LOGISTIC",):
            scores, limit = np.concatenate([1 - one, one], 1), 0.5
        else:
            scores, limit = np.concatenate([-one, one], 1), 0.0
        return labels[(one[:, 0] > limit).astype(int)], scores.astype(np.float32)
    best = labels[np.argmax(scores, 1)]
    return best, post_transformed(scores, post_transform)


def post_transformed(scores: Value, how: str) -> Any:
    """Scores as they are, or as probabilities."""
    if how == "LOGISTIC":
        found = 1 / (1 + np.exp(-scores))
    elif how in ("SOFTMAX", "SOFTMAX_ZERO"):
        raised = np.exp(scores - scores.max(1, keepdims=True))
        raised = raised * (scores != 0) if how == "SOFTMAX_ZERO" else raised
        found = raised / raised.sum(1, keepdims=True)
    else:
        found = scores
    return found.astype(np.float32)


MODES = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}


class _Trees:
    """Trees of the old operators, whose nodes are numbered in each tree."""

    def __init__(self, about: dict[str, Any]):
        ids, nodes = about["nodes_treeids"], about["nodes_nodeids"]
        self.at = {pair: k for k, pair in enumerate(zip(ids, nodes, strict=True))}
        first: dict[int, int] = {}
        for k, tree in enumerate(ids):
            first.setdefault(tree, k)
        self.roots = list(first.values())
        self.about, self.trees = about, ids

    def leaves(self, x: Value) -> list[Any]:
        """For each tree, which node each row ends in."""
        about = self.about
        features = np.array(about["nodes_featureids"])
        values = about.get("nodes_values_as_tensor")
        limits = as_array(about["nodes_values"] if values is None else values)
        modes = np.array(about["nodes_modes"], object)
        missing = about.get("nodes_missing_value_tracks_true") or [0] * len(features)
        on_true = self._children("nodes_truenodeids")
        on_false = self._children("nodes_falsenodeids")
        rows = np.arange(len(x))
        found = []
        for root in self.roots:
            at = np.full(len(x), root)
            for _ in range(len(features)):
                inner = modes[at] != "LEAF"
                if not inner.any():
                    break
                picked = x[rows, features[at]].astype(limits.dtype)
                goes = np.zeros(len(x), bool)
                for mode, compare in MODES.items():
                    goes |= (modes[at] == mode) & compare(picked, limits[at])
                goes |= np.isnan(picked) & np.array(missing, bool)[at]
                at = np.where(inner, np.where(goes, on_true[at], on_false[at]), at)
            found.append(at)
        return found

    def _children(self, word: str) -> Any:
        pairs = zip(self.trees, self.about[word], strict=True)
        return np.array([self.at.get(pair, 0) for pair in pairs])

    def scores(self, x: Value, word: str, count: int) -> Any:
        """[rows, trees, count]: what the leaves give to each target or class."""
        about = self.about
        values = about.get(f"{word}_weights_as_tensor")
        weights = as_array(about[f"{word}_weights"] if values is None else values)
        table = np.zeros((len(self.trees), count), weights.dtype)
        keys = zip(about[f"{word}_treeids"], about[f"{word}_nodeids"], strict=True)
        for pair, place, weight in zip(
            keys, about[f"{word}_ids"], weights, strict=True
        ):
            table[self.at[pair], place] += weight
        return np.stack([table[at] for at in self.leaves(x)], 1)


@host_operator("TreeEnsembleRegressor", domain=DOMAIN)
def tree_ensemble_regressor(
    x: Value,
    *,
    aggregate_function: str = "SUM",
    base_values: Sequence[float] = (),
    n_targets: int = 1,
    post_transform: str = "NONE",
    base_values_as_tensor: Value = None,
    nodes_falsenodeids: Sequence[int] = (),
    nodes_featureids: Sequence[int] = (),
    nodes_hitrates: Sequence[float] = (),
    nodes_hitrates_as_tensor: Value = None,
    nodes_missing_value_tracks_true: Sequence[int] = (),
    nodes_modes: Sequence[str] = (),
    nodes_nodeids: Sequence[int] = (),
    nodes_treeids: Sequence[int] = (),
    nodes_truenodeids: Sequence[int] = (),
    nodes_values: Sequence[float] = (),
    nodes_values_as_tensor: Value = None,
    target_ids: Sequence[int] = (),
    target_nodeids: Sequence[int] = (),
    target_treeids: Sequence[int] = (),
    target_weights: Sequence[float] = (),
    target_weights_as_tensor: Value = None,
) -> Any:
    """What trees give each row, added up (or the mean, least, largest)."""
    scores = _Trees(dict(locals())).scores(x, "target", n_targets)
    reduce = {"SUM": np.sum, "AVERAGE": np.mean, "MIN": np.min, "MAX": np.max}
    found = reduce[aggregate_function](scores, 1)
    base = base_values if base_values_as_tensor is None else base_values_as_tensor
    if np.size(base):
        found = found + np.array(base)
    return post_transformed(found, post_transform)


@host_operator("TreeEnsembleClassifier", domain=DOMAIN, many=True)
def tree_ensemble_classifier(
    x: Value,
    *,
    base_values: Sequence[float] = (),
    class_ids: Sequence[int] = (),
    class_nodeids: Sequence[int] = (),
    class_treeids: Sequence[int] = (),
    class_weights: Sequence[float] = (),
    class_weights_as_tensor: Value = None,
    classlabels_int64s: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    post_transform: str = "NONE",
    base_values_as_tensor: Value = None,
    nodes_falsenodeids: Sequence[int] = (),
    nodes_featureids: Sequence[int] = (),
    nodes_hitrates: Sequence[float] = (),
    nodes_hitrates_as_tensor: Value = None,
    nodes_missing_value_tracks_true: Sequence[int] = (),
    nodes_modes: Sequence[str] = (),
    nodes_nodeids: Sequence[int] = (),
    nodes_treeids: Sequence[int] = (),
    nodes_truenodeids: Sequence[int] = (),
    nodes_values: Sequence[float] = (),
    nodes_values_as_tensor: Value = None,
    outputs: int = 1,
) -> tuple[Any, ...]:
    """The class that trees vote for in each row, and the votes."""
    labels = class_labels(classlabels_int64s, classlabels_strings)
    single = (
        len(labels) == 2 and set(class_ids) <= {0} | {1} and len(set(class_ids)) == 1
    )
    about = dict(locals())
    if single:
        about["class_ids"] = [0] * len(class_ids)
    scores = _Trees(about).scores(x, "class", 1 if single else len(labels)).sum(1)
    base = base_values if base_values_as_tensor is None else base_values_as_tensor
    if np.size(base):
        scores = scores + np.array(base)
    if not single:
        return _decided(scores, labels, post_transform)
    if post_transform == "NONE":  # votes between 0 and 1
        both = np.concatenate([1 - scores, scores], 1).astype(np.float32)
        return labels[(scores[:, 0] > 0.5).astype(int)], both
    return _decided(scores, labels, post_transform)


@host_operator("TreeEnsemble", domain=DOMAIN)
def tree_ensemble(
    x: Value,
    *,
    aggregate_function: int = 1,
    leaf_targetids: Sequence[int],
    leaf_weights: Value,
    membership_values: Value = None,
    n_targets: int = 1,
    nodes_falseleafs: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: Value = None,
    nodes_missing_value_tracks_true: Sequence[int] = (),
    nodes_modes: Value,
    nodes_splits: Value,
    nodes_trueleafs: Sequence[int],
    nodes_truenodeids: Sequence[int],
    post_transform: int = 0,
    tree_roots: Sequence[int],
) -> Any:
    """What trees give each row; a node may also ask whether a value is in a set."""
    modes, splits = as_array(nodes_modes), as_array(nodes_splits)
    weights = as_array(leaf_weights)
    sets = _member_sets(modes, membership_values)
    compare = [*MODES.values()]
    found = np.zeros((len(x), len(tree_roots), n_targets), weights.dtype)
    touched = np.zeros(found.shape, bool)
    missing = nodes_missing_value_tracks_true or [0] * len(modes)
    for i, row in enumerate(x):
        for t, root in enumerate(tree_roots):
            at, leaf = root, False
            while not leaf:
                value, mode = row[nodes_featureids[at]], modes[at]
                if mode == 6:
                    goes = value in sets[at]
                else:
                    goes = bool(compare[mode](value, splits[at]))
                goes = goes or (bool(np.isnan(value)) and bool(missing[at]))
                leaves = nodes_trueleafs if goes else nodes_falseleafs
                nodes = nodes_truenodeids if goes else nodes_falsenodeids
                at, leaf = nodes[at], bool(leaves[at])
            place = leaf_targetids[at]
            found[i, t, place] += weights[at]
            touched[i, t, place] = True
    return _aggregated(found, touched, aggregate_function, post_transform, x.dtype)


def _aggregated(
    found: Value, touched: Value, how: int, post_transform: int, dtype: Value
) -> Any:
    if how in (2, 3):  # the least or largest of the trees that say something
        empty = np.inf if how == 2 else -np.inf
        held = np.where(touched, found, empty)
        made = held.min(1) if how == 2 else held.max(1)
        made = np.where(touched.any(1), made, 0)
    else:
        made = found.mean(1) if how == 0 else found.sum(1)
    names = {1: "SOFTMAX", 2: "LOGISTIC", 3: "SOFTMAX_ZERO"}
    return post_transformed(made, names.get(post_transform, "NONE")).astype(dtype)


def _member_sets(modes: Value, values: Value) -> dict[int, set[float]]:
    """The sets of the nodes that ask for membership; NaN ends each."""
    found: dict[int, set[float]] = {}
    if values is None:
        return found
    rest = iter(as_array(values).tolist())
    for node in np.flatnonzero(modes == 6):
        members = set()
        for value in rest:
            if np.isnan(value):
                break
            members.add(value)
        found[int(node)] = members
    return found


@host_operator("ZipMap", domain=DOMAIN)
def zip_map(
    x: Value,
    *,
    classlabels_int64s: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
) -> list[Any]:
    """A map from class to score for each row."""
    labels = list(classlabels_strings) or list(classlabels_int64s)
    return [dict(zip(labels, row.tolist(), strict=True)) for row in x]
