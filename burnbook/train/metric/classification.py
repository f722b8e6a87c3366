"""From scores to decisions, from classes to one number."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from burnbook.train.metric.reading import at_least_one


class ClassReduction(Enum):
    """How the classes become one number.

    Micro counts all decisions together, so frequent classes weigh more; Macro takes
    every class by itself and then the mean, so all classes weigh the same.

    Example:
        >>> ClassReduction.Macro
        Macro
    """

    Micro = "micro"
    Macro = "macro"

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


@dataclass(frozen=True, repr=False)
class Threshold:
    """A class is decided for when its score is above the threshold."""

    threshold: float = 0.5

    def decide(self, scores: np.ndarray) -> np.ndarray:
        """Which classes are decided for.

        Shapes: scores [n, classes] -> [n, classes]
        """
        return scores > float(self.threshold)

    def __repr__(self) -> str:
        return f"Threshold({float(self.threshold)})"


@dataclass(frozen=True, repr=False)
class TopK:
    """The k classes with the highest scores are decided for.

    Why: among equal scores the class with the lower number comes first, as in argmax.
    """

    k: int = 1

    def __post_init__(self) -> None:
        at_least_one("DecisionRule.TopK", "k", self.k)

    def decide(self, scores: np.ndarray) -> np.ndarray:
        """Which classes are decided for.

        Shapes: scores [n, classes] -> [n, classes]
        """
        best = np.argsort(-scores, axis=1, kind="stable")[:, : self.k]
        decided = np.zeros(scores.shape, bool)
        np.put_along_axis(decided, best, True, axis=1)
        return decided & ~np.isnan(scores)

    def __repr__(self) -> str:
        return f"TopK({self.k})"


class DecisionRule:
    """When a score is a yes: above a threshold, or among the best k; NaN never is.

    Example:
        >>> DecisionRule.Threshold(0.5), DecisionRule.TopK(1)
        (Threshold(0.5), TopK(1))
        >>> DecisionRule.TopK(1).decide(np.array([[0.2, 0.7, 0.1]]))
        array([[False,  True, False]])
    """

    Threshold = Threshold
    TopK = TopK


Rule = Threshold | TopK
