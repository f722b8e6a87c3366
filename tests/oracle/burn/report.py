"""The counts over all cases: agree, differ on purpose, differ otherwise."""

import warnings
from collections import Counter
from collections.abc import Sequence

from burnbook.backend import Numpy
from burnbook.backend.base import Backend
from tests.oracle.burn.calls import answer
from tests.oracle.burn.cases import Case, all_cases
from tests.oracle.burn.compare import disagreement
from tests.oracle.burn.layers import layer

BACKENDS = {"plain": Numpy(compiled=False), "compiled": Numpy()}


def difference(case: Case, device: Backend) -> str | None:
    """What differs in one case: its outputs, and what its layer prints."""
    try:
        found = answer(case, device)
    except Exception as error:
        found = error
    # Some gradients are 0 but for rounding; those of their layer are of order 1.
    told = disagreement(case.outputs, found, 1.0 if case.tracked else 0.0)
    if told or case.refused or case.display is None:
        return told
    return _printed(case, device)


def _printed(case: Case, device: Backend) -> str | None:
    made = layer(case, device)
    told = {"text": case.display}, {"value": case.num_params}
    return disagreement(list(told), [str(made), made.num_params()])


def main(wanted: Sequence[str]) -> None:
    """Print what disagrees on each backend, and how many do."""
    warnings.simplefilter("ignore")
    for name, device in BACKENDS.items():
        count: Counter[str] = Counter()
        for case in all_cases():
            if wanted and not case.id.startswith(tuple(wanted)):
                continue
            told = difference(case, device)
            count["agree" if told is None else "other"] += 1
            if told is not None:
                print(f"{case.id}  {told}")
        print(name, dict(count))
