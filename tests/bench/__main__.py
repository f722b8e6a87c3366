"""Print the table: python -m tests.bench [--rounds 20] [w1 inference1 w5 ops …].

Two have tables of their own, see there: `python -m tests.bench families` every op,
`python -m tests.bench models` imported models.
"""

import argparse
import os
import sys

from tests.bench import families, imported
from tests.bench.tables import BUDGETS, TABLES


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("tables", nargs="*", default=list(TABLES))
    asked.add_argument("--rounds", type=int, default=20)
    asked.add_argument("--cores", type=int, help="how many cores all may use")
    options = asked.parse_args()
    if options.cores:  # processes begin with what this one may use
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    print("| what | ratio or figure | budget | |\n|---|---|---|---|")
    for name in options.tables:
        for what, figure, note in TABLES[name](options.rounds):
            shown = "–" if figure is None else f"{figure:.2f}"
            budget = BUDGETS.get(what, "")
            print(f"| {what} | {shown} | {budget} | {note} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["families"]:
        families.main(sys.argv[2:])
    elif sys.argv[1:2] == ["models"]:
        imported.main(sys.argv[2:])
    else:
        main()
