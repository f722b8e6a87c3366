"""The counts over all cases: agree, differ on purpose, differ otherwise."""

import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from burnbook.backend import Numpy
from burnbook.backend.base import Backend
from burnbook.core.errors import BurnbookError
from burnbook.reference.differences import explain_difference
from tests.oracle.burn.calls import answer
from tests.oracle.burn.cases import PATH, Case, all_cases
from tests.oracle.burn.compare import disagreement
from tests.oracle.burn.layers import layer

BACKENDS = {"plain": Numpy(compiled=False), "compiled": Numpy()}


def difference(case: Case, device: Backend) -> str | None:
    """What differs in one case: its outputs, and what its layer prints."""
    found: object
    try:
        found = answer(case, device)
    except (BurnbookError, AssertionError) as error:
        found = error
    except Exception as error:  # not in our words: nothing explains it
        error.add_note(f"in {case.id}")
        raise
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
    """Print what disagrees without a reason on each backend, and how many do.

    With the start of an id, also what disagrees for a reason, and the reason. With the
    name of a file, the cases are those of the file.
    """
    warnings.simplefilter("ignore")
    files = [Path(one) for one in wanted if one.endswith(".json")] or [PATH]
    cases = [case for file in files for case in all_cases(file)]
    wanted = [one for one in wanted if not one.endswith(".json")]
    for name, device in BACKENDS.items():
        count: Counter[str] = Counter()
        for case in cases:
            if wanted and not case.id.startswith(tuple(wanted)):
                continue
            told = difference(case, device)
            row = None if told is None else explain_difference(case)
            state = "agree" if told is None else "deliberate" if row else "other"
            count[state] += 1
            if state == "other" or (wanted and row):
                print(f"{case.id}  [{row.name if row else 'no reason'}]  {told}")
        print(name, dict(count))
