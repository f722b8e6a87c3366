"""ai.onnx.ml: support vector machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnbook.core.errors import ArgumentError
from burnbook.importers.onnx.operators.ml import DOMAIN, class_labels, post_transformed
from burnbook.importers.onnx.operators.registry import host_operator
from burnbook.importers.onnx.values import Value

FLOOR = 1e-7  # of the probability that one class wins against another


def _kernel(x: Any, vectors: Any, kind: str, params: Sequence[float]) -> Any:
    """How alike rows and vectors are. [n, d], [m, d] -> [n, m]"""
    gamma, coef0, degree = [*params, 0.0, 0.0, 0.0][:3]
    if kind.upper() == "RBF":
        squares = (x * x).sum(1)[:, None] + (vectors * vectors).sum(1)[None]
        return np.exp(-gamma * np.maximum(squares - 2 * (x @ vectors.T), 0))
    products = x @ vectors.T
    match kind.upper():
        case "LINEAR":
            return products
        case "POLY":
            return (gamma * products + coef0) ** degree
        case "SIGMOID":
            return np.tanh(gamma * products + coef0)
        case _:
            what = f"no kernel is called {kind!r}"
            raise ArgumentError("onnx svm", what, cure="LINEAR, POLY, RBF or SIGMOID")


@host_operator("SVMRegressor", domain=DOMAIN)
def svm_regressor(
    x: Value,
    *,
    coefficients: Sequence[float] = (),
    kernel_params: Sequence[float] = (),
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: Sequence[float] = (0.0,),
    support_vectors: Sequence[float] = (),
) -> Any:
    """A weighted sum of kernels with support vectors; for one class, its sign."""
    wide = x.astype(np.float64)
    weights = np.array(coefficients, np.float64)
    if n_supports:
        vectors = np.array(support_vectors, np.float64).reshape(n_supports, -1)
        found = _kernel(wide, vectors, kernel_type, kernel_params) @ weights
    else:
        found = wide @ weights
    found = found + rho[0]
    if one_class:
        found = np.where(found > 0, 1.0, -1.0)
    return post_transformed(found[:, None], post_transform)


@host_operator("SVMClassifier", domain=DOMAIN, many=True)
def svm_classifier(
    x: Value,
    *,
    classlabels_ints: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    coefficients: Sequence[float] = (),
    kernel_params: Sequence[float] = (),
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    prob_a: Sequence[float] = (),
    prob_b: Sequence[float] = (),
    rho: Sequence[float] = (),
    support_vectors: Sequence[float] = (),
    vectors_per_class: Sequence[int] = (),
    outputs: int = 1,
) -> tuple[Any, ...]:
    """The class that most of the machines for two classes vote for, and scores.

    The scores are those of all pairs, or with prob_a and prob_b the probability of each
    class. Without support vectors each class has a line of weights.
    """
    labels = class_labels(classlabels_ints, classlabels_strings)
    wide = x.astype(np.float64)
    weights = np.array(coefficients, np.float64)
    if not sum(vectors_per_class):
        scores = wide @ weights.reshape(len(labels), -1).T + rho[0]
        return labels[scores.argmax(1)], post_transformed(scores, post_transform)
    counts = [int(n) for n in vectors_per_class]
    vectors = np.array(support_vectors, np.float64).reshape(sum(counts), -1)
    kernels = _kernel(wide, vectors, kernel_type, kernel_params)
    weights = weights.reshape(-1, sum(counts))
    ends = np.cumsum(counts)
    parts = [slice(end - n, end) for end, n in zip(ends, counts, strict=True)]
    pairs = [(i, j) for i in range(len(parts)) for j in range(i + 1, len(parts))]
    columns = [
        kernels[:, parts[i]] @ weights[j - 1, parts[i]]
        + kernels[:, parts[j]] @ weights[i, parts[j]]
        + rho[k]
        for k, (i, j) in enumerate(pairs)
    ]
    scores = np.stack(columns, 1)
    votes = np.zeros((len(wide), len(parts)))
    for (i, j), column in zip(pairs, columns, strict=True):
        votes[:, i] += column > 0
        votes[:, j] += column <= 0
    best = votes.argmax(1)
    if prob_a:
        scores = _probabilities(columns, pairs, len(parts), prob_a, prob_b)
        best = scores.argmax(1) if len(parts) == 2 else best
    elif len(parts) == 2:
        scores = np.concatenate([-scores, scores], 1)
        best = np.ones_like(best) if min(coefficients) >= 0 else best
    return labels[best], post_transformed(scores, post_transform)


def _probabilities(
    columns: list[Any],
    pairs: list[tuple[int, int]],
    count: int,
    prob_a: Sequence[float],
    prob_b: Sequence[float],
) -> Any:
    """The probability of each class from those of all pairs.

    Source: Wu, Lin, Weng, "Probability estimates for multi-class classification by
    pairwise coupling", 2004, algorithm 2, as in libsvm.
    """
    n = len(columns[0])
    wins = np.zeros((n, count, count))
    for k, ((i, j), column) in enumerate(zip(pairs, columns, strict=True)):
        one = 1 / (1 + np.exp(column * prob_a[k] + prob_b[k]))
        wins[:, i, j] = np.clip(one, FLOOR, 1 - FLOOR)
        wins[:, j, i] = 1 - wins[:, i, j]
    found = np.full((n, count), 1 / count)
    for row, won in enumerate(wins):
        q = -won.T * won
        np.fill_diagonal(q, (won * won).sum(0))
        p = found[row]
        for _ in range(max(100, count)):
            qp = q @ p
            pqp = p @ qp
            if np.abs(qp - pqp).max() < 0.005 / count:
                break
            for t in range(count):
                step = (pqp - qp[t]) / q[t, t]
                p[t] += step
                pqp = (pqp + step * (step * q[t, t] + 2 * qp[t])) / (1 + step) ** 2
                qp = (qp + step * q[t]) / (1 + step)
                p /= 1 + step
    return found
