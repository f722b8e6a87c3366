"""Key remap: names of a file become names of a module, by patterns.

Patterns and replacements are written as for Rust's crate regex, so that the book's
examples work as they stand: r"conv\\.(.*)" and "$1".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from burnbook.core.errors import ConfigError, RecordError
from burnbook.record.tree import short

Rule = tuple[str, str]
MOST_LISTS = 50_000  # whose numbers close their gaps

# What Rust's crate has not, or writes otherwise.
_TWINS = {r"\z": r"\Z"}
_ASCII = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "word": r"\w",
    "space": r"\s",
    "xdigit": "0-9a-fA-F",
}
_TOKENS = re.compile(
    r"\[:(?P<posix>\w+):\]"
    r"|\\[pP](?P<property>\{[^}]*\}|\w)"
    r"|\\(?P<escape>.)"
    r"|(?P<around>\(\?(?:=|!|<=|<!|>|P=|\())"
    r"|(?P<named>\(\?<(?![=!]))",
    re.DOTALL,
)
_REFERENCE = re.compile(r"\$(?:\$|\{(?P<braced>[^}]*)\}|(?P<bare>[0-9A-Za-z_]+))")


def rust_regex(pattern: str, where: str = "regex") -> re.Pattern[str]:
    """Compile a pattern of Rust's crate regex.

    Raises:
        ConfigError: it is no pattern, or has what Rust's crate does not know:
            look-around and references to groups.

    Example:
        >>> rust_regex(r"(?<name>[a-z]+)\\.(.*)").search("conv.weight").groupdict()
        {'name': 'conv'}
    """

    def translated(found: re.Match[str]) -> str:
        if found["posix"]:
            if found["posix"] not in _ASCII:
                raise _refused(where, pattern, f"[:{found['posix']}:]", "a-z and so on")
            return _ASCII[found["posix"]]
        if found["named"]:
            return "(?P<"
        if found["around"]:
            what = found["around"]
            raise _refused(where, pattern, what, "a group, and another replacement")
        if found["property"]:
            what = f"Python's patterns have no {found[0]}"
            facts = [("pattern", repr(pattern)[:80])]
            raise ConfigError(where, what, facts, r"\w, \d or a range")
        if found["escape"].isdigit() and found["escape"] != "0":
            raise _refused(where, pattern, found[0], "the text itself once more")
        return _TWINS.get(found[0], found[0])

    if not isinstance(pattern, str):
        what = f"{type(pattern).__name__} is not a pattern"
        raise ConfigError(where, what, cure=r'r"conv\.(.*)"')
    try:
        return re.compile(_TOKENS.sub(translated, pattern))
    except (re.error, OverflowError, RecursionError) as cause:
        facts = [("pattern", repr(pattern)[:80])]
        raise ConfigError(where, f"this is no pattern: {cause}", facts) from None


def _refused(where: str, pattern: str, part: str, cure: str) -> ConfigError:
    what = f"Rust's regex has no {part}"
    return ConfigError(where, what, [("pattern", repr(pattern)[:80])], cure)


def replace_all(pattern: re.Pattern[str], replacement: str, text: str) -> str:
    """Replace every match, as `Regex::replace_all` in Rust does.

    In the replacement, $1, ${1}, $name and ${name} are groups (unknown ones are empty)
    and $$ is a dollar; backslashes are nothing special.

    Example:
        >>> replace_all(rust_regex(r"conv\\.(.*)"), "$1", "conv.conv1.weight")
        'conv1.weight'
        >>> replace_all(rust_regex("a"), "$1a$$", "ab"), re.sub("x*", "-", "abxd")
        ('$b', '-a-b--d-')
        >>> replace_all(rust_regex("x*"), "-", "abxd")
        '-a-b-d-'
    """
    parts: list[str] = []
    end = 0
    last = -1
    for match in pattern.finditer(text):
        if match.start() == match.end() == last:
            continue  # an empty match right behind another one
        parts += [text[end : match.start()], _expanded(replacement, match)]
        end = last = match.end()
    return "".join([*parts, text[end:]])


def _expanded(replacement: str, match: re.Match[str]) -> str:
    def group(reference: re.Match[str]) -> str:
        if reference[0] == "$$":
            return "$"
        name = reference["braced"] if reference["bare"] is None else reference["bare"]
        try:
            return match[int(name) if name.isdecimal() else name] or ""
        except (IndexError, OverflowError):
            return ""

    return _REFERENCE.sub(group, replacement)


@dataclass(frozen=True)
class KeyRemapper:
    """Rules that rename keys; each sees what the one before made of a key.

    A rule fires where its pattern matches anywhere in the key, and replaces every
    match.

    Example:
        >>> remapper = KeyRemapper().add_pattern(r"^pytorch\\.(.*)", "burn.$1")
        >>> remapper = remapper.add_pattern(r"\\.gamma$", ".weight")
        >>> remapper.renamed("pytorch.norm.gamma")
        'burn.norm.weight'
    """

    rules: tuple[Rule, ...] = ()
    _compiled: tuple[Callable[[str], str], ...] = field(
        default=(), repr=False, compare=False
    )

    def __post_init__(self) -> None:
        made = tuple(_rule(*rule) for rule in self.rules)
        object.__setattr__(self, "_compiled", made)

    @classmethod
    def from_patterns(cls, patterns: Iterable[Rule]) -> KeyRemapper:
        """A remapper with these pairs of a pattern and a replacement.

        Raises:
            ConfigError: one is no pattern of Rust's regex.
        """
        return cls(tuple((str(a), str(b)) for a, b in patterns))

    def add_pattern(self, pattern: str, replacement: str) -> KeyRemapper:
        """The same remapper with one more rule at the end.

        Raises:
            ConfigError: it is no pattern of Rust's regex.
        """
        return KeyRemapper((*self.rules, (pattern, replacement)))

    def is_empty(self) -> bool:
        """Whether there are no rules."""
        return not self.rules

    def renamed(self, key: str) -> str:
        """What all rules in their order make of a key."""
        for rule in self._compiled:
            key = rule(key)
        return key

    def all_renamed(self, keys: Iterable[str], where: str) -> dict[str, str]:
        """The new name of each key; where: what an error starts with.

        Why an error: if two tensors had one name, one of them would be lost.

        Raises:
            RecordError: two keys get one name.
        """
        named: dict[str, str] = {}
        olds: dict[str, str] = {}
        twice: dict[str, list[str]] = {}
        for old in keys:
            named[old] = new = self.renamed(old)
            if olds.setdefault(new, old) != old:
                twice.setdefault(new, [olds[new]]).append(old)
        if not twice:
            return named
        rows = [(short(new), _several(held)) for new, held in twice.items()]
        what = "the rules for names give several tensors one name"
        cure = "rules that keep the names apart, as $1 does with what a group matched"
        raise RecordError(where, what, rows, cure)


def _several(names: list[str]) -> str:
    shown = " and ".join(map(short, names[:4]))
    return shown + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _rule(pattern: str, replacement: str) -> Callable[[str], str]:
    compiled = rust_regex(pattern, "key remap")
    if not isinstance(replacement, str):
        what = f"{type(replacement).__name__} is no replacement for {pattern!r}"
        raise ConfigError("key remap", what, cure='"$1"')
    return lambda key: replace_all(compiled, replacement, key)


def contiguous(keys: Iterable[str]) -> dict[str, str]:
    """New names in which the numbers below each prefix are 0, 1, 2, …

    Example:
        >>> contiguous(["fc.0.weight", "fc.2.weight", "fc.10.bias"])
        {'fc.0.weight': 'fc.0.weight', 'fc.2.weight': 'fc.1.weight',
         'fc.10.bias': 'fc.2.bias'}
    """
    keys = list(keys)
    places = {
        prefix: {old: new for new, old in enumerate(found)}
        for prefix, found in numbers_below(keys).items()
    }
    named: dict[str, str] = {}
    for key in keys:
        parts = key.split(".")
        for i, part in enumerate(parts[:]):
            if is_number(part):
                found = places.get(".".join(key.split(".")[:i]), {})
                parts[i] = str(found.get(int(part), part))
        named[key] = ".".join(parts)
    return named


def numbers_below(keys: Iterable[str]) -> dict[str, list[int]]:
    """For each prefix, which numbers follow it, in order.

    Example:
        >>> numbers_below(["fc.2.weight", "fc.0.weight", "norm.bias"])
        {'fc': [0, 2]}
    """
    found: dict[str, set[int]] = {}
    for key in keys:
        parts = key.split(".")
        for i, part in enumerate(parts):
            if is_number(part):
                found.setdefault(".".join(parts[:i]), set()).add(int(part))
        if len(found) > MOST_LISTS:  # of a file that is no model; its names stay
            return {}
    return {prefix: sorted(numbers) for prefix, numbers in found.items()}


def is_number(part: str) -> bool:
    """Whether a part of a key is a place in a list."""
    return part.isascii() and part.isdecimal() and len(part) < 10
