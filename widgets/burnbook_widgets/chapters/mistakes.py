"""What is probably wrong with numbers, said in one sentence.

A sign, a factor, one too many, rows for columns, a mean for a sum: such differences
can be seen in the numbers themselves. Nothing here knows an exercise.
"""

import math

import numpy as np

TOLERANCE = 1e-5
NUMBERS = "fiub"  # the dtypes that can be compared with a tolerance
COUNTS = "iu"
DIGITS = 4  # a number that is rounded to so many is right, fewer are too few
FACTORS = {
    2.0: "twice",
    0.5: "half of",
    3.0: "three times",
    10.0: "ten times",
    0.1: "a tenth of",
    100.0: "a hundred times",
    0.01: "a hundredth of",
    1000.0: "a thousand times",
    0.001: "a thousandth of",
}


def near(a: float, b: float) -> bool:
    """Whether two numbers are the same but for rounding."""
    return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-12)


def digits_of(right: float, answer: float) -> int | None:
    """To how many digits an answer is rounded, if that is all that it is."""
    for digits in range(2, 10):
        if float(f"{right:.{digits}g}") == answer:
            return digits
    return None


def is_rounded(right: np.ndarray, answer: np.ndarray) -> bool:
    """Whether an answer is right, written with enough digits."""
    if right.dtype.kind != "f" or answer.dtype.kind != "f":
        return False
    pairs = zip(right.ravel().tolist(), answer.ravel().tolist(), strict=True)
    return all(near(a, b) or (digits_of(a, b) or 0) >= DIGITS for a, b in pairs)


def in_number(right: float, answer: float) -> str:
    """Say what is probably wrong with one number."""
    if not math.isfinite(answer):
        return f"it is {answer}"
    if isinstance(right, float) and digits_of(right, answer):
        return f"nearly: round it less, to {DIGITS} digits or more"
    if near(right, -answer):
        return "the right size with the wrong sign"
    if isinstance(right, int) and abs(answer - right) == 1:
        return "one too many" if answer > right else "one too few"
    if isinstance(right, int) and abs(answer - right) < 1:
        return "nearly: a whole number is asked for"
    if right and near(right * answer, 1):
        return "it is upside down: 1 divided by it is right"
    for factor, name in FACTORS.items():
        if right and near(answer, right * factor):
            return f"it is {name} what it should be"
    return "it is too large" if answer > right else "it is too small"


def in_array(right: np.ndarray, answer: np.ndarray) -> str:
    """Say what is probably wrong with some numbers whose shape is right."""
    if not np.isfinite(answer).all():
        return "not all of it is a finite number"
    for told, changed in changes(answer):
        if changed.shape == right.shape and np.allclose(changed, right, TOLERANCE):
            return told
    if np.allclose(np.sort(answer, None), np.sort(right, None), TOLERANCE):
        return "the right numbers, in another order"
    with np.errstate(all="ignore"):
        ratio = (answer / right)[np.abs(right) > TOLERANCE]
    if ratio.size and ratio[0] and np.allclose(ratio, ratio[0], TOLERANCE):
        rest = answer[np.abs(right) <= TOLERANCE]
        if np.abs(rest).max(initial=0) <= TOLERANCE:
            name = next((n for f, n in FACTORS.items() if near(f, ratio[0])), None)
            return (
                f"every number is {name or f'{ratio[0]:.4g} times'} what it should be"
            )
    if np.allclose(answer - right, (answer - right).flat[0], TOLERANCE):
        return f"every number is too {size(answer - right)} by the same amount"
    return which(right, answer)


def changes(answer: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """What an answer would be with one common slip undone."""
    found = [("the right sizes with the wrong sign", -answer)]
    if answer.ndim == 2:
        found.append(("it is transposed: rows and columns are exchanged", answer.T))
    found += [
        (f"it is in reverse order along dim {dim}", np.flip(answer, dim))
        if answer.ndim > 1
        else ("it is in reverse order", np.flip(answer))
        for dim in range(answer.ndim)
    ]
    return found


def which(right: np.ndarray, answer: np.ndarray) -> str:
    """Say how many numbers are wrong, and where the first of them stands."""
    wrong = ~np.isclose(answer, right, TOLERANCE, TOLERANCE)
    count, total = int(wrong.sum()), right.size
    place = [int(i) for i in np.argwhere(wrong)[0]]
    told = f"the one at {place} is too {size((answer - right)[wrong])}"
    if count == 1:
        return f"one of {total} numbers is wrong: {told}"
    many = "all numbers" if count == total else f"{count} of {total} numbers"
    return f"{many} are wrong: {told}"


def size(difference: np.ndarray) -> str:
    """Say which way the first number is off."""
    return "large" if difference.flat[0] > 0 else "small"
