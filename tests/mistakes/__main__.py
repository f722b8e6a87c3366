"""Print how the mistakes are graded: `python -m tests.mistakes`."""

import sys
from collections import Counter

from tests.mistakes import GRADES, mistakes, score

graded = score()
subjects = dict.fromkeys(row.subject for row in mistakes().values())
lines = [f"{'':12}" + "".join(f"{name:>7}" for name in GRADES)]
for subject in [*subjects, "all"]:
    counts = Counter(
        grade
        for name, (grade, _) in graded.items()
        if subject in ("all", mistakes()[name].subject)
    )
    lines.append(f"{subject:12}" + "".join(f"{counts[name]:7}" for name in GRADES))
for name, (grade, why) in graded.items():
    if grade not in ("A", "works"):
        lines.append(f"{grade}  {name}: " + "\n     ".join(why.splitlines()[:9]))
sys.stdout.write("\n".join(lines) + "\n")
