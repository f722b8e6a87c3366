"""Rust as text: numbers, names and types, for Burn 0.15 and for the newest."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from burnbook.core.errors import RecordError
from burnbook.core.files import printable
from burnbook.core.versions import VERSION, release_of

NEWEST = "0.22.1"
KNOWN: dict[tuple[int, ...], str] = {(0, 15): "0.15.0", (0, 22): NEWEST}
KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        "as async await become box break const continue crate do dyn else enum extern "
        "false final fn for gen if impl in let loop macro match mod move mut override "
        "priv pub ref return self static struct super trait true try type typeof "
        "unsafe unsized use virtual where while yield Self",
    )
)
#: Names in the code that Burn's derives write, which a field of a struct would hide.
DERIVED = (
    "content", "device", "devices", "mapper", "module", "num_params", "record",
    "serde_state", "visitor",
)  # fmt: skip
KINDS = {"Float": "", "Int": "Int", "Bool": "Bool"}


class Untranslatable(Exception):
    """Something that Burn of a release cannot say; the text tells what and why."""


class Reported(Untranslatable):
    """The same where a part of it is listed already."""


@dataclass(frozen=True)
class Dialect:
    """What differs in the Rust of two releases of Burn: the backend is a type or none.

    Example:
        >>> Dialect.of("0.15").tensor(4), Dialect.of("0.22").tensor(2, "Int")
        ('Tensor<B, 4>', 'Tensor<2, Int>')
    """

    version: str

    @classmethod
    def of(cls, version: str = VERSION) -> Dialect:
        """The dialect of a release.

        Raises:
            RecordError: there is none: source is written for 0.15 and 0.22 only.
        """
        release = release_of(version)
        found = KNOWN.get(release[:2])
        if found is None:
            what = f"there is no Rust for Burn {version!r}"
            cure = 'version="0.15", or "0.22" for the newest'
            raise RecordError("export_rust", what, cure=cure)
        return cls(found)

    @property
    def new(self) -> bool:
        """Whether this is the newest, in which tensors have no backend as a type."""
        return self.version == NEWEST

    @property
    def backend(self) -> str:
        """The type parameter of a module, where it is used."""
        return "" if self.new else "<B>"

    @property
    def bound(self) -> str:
        """The type parameter of a module, where it is declared."""
        return "" if self.new else "<B: Backend>"

    @property
    def device(self) -> str:
        """The type of a device."""
        return "&Device" if self.new else "&B::Device"

    def tensor(self, rank: int, kind: str = "Float") -> str:
        """The type of a tensor."""
        parts = ["" if self.new else "B", str(rank), KINDS[kind]]
        return f"Tensor<{', '.join(part for part in parts if part)}>"

    def made(self, rank: int, kind: str = "Float") -> str:
        """The same where a tensor is made: `Tensor::<B, 2>`."""
        return self.tensor(rank, kind).replace("Tensor", "Tensor::", 1)


def number(value: object) -> str:
    """A number or a truth value; a float always shows that it is one.

    Example:
        >>> number(3), number(1e-5), number(2.0), number(True), number(-math.inf)
        ('3', '1e-5', '2.0', 'true', 'f64::NEG_INFINITY')
    """
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    made = float(value)  # type: ignore[arg-type] # of NumPy, perhaps
    if math.isnan(made):
        return "f64::NAN"
    if math.isinf(made):
        return "f64::INFINITY" if made > 0 else "f64::NEG_INFINITY"
    text = re.sub(r"e([+-])0?(\d)", r"e\1\2", repr(made)).replace("e+", "e")
    return text if any(letter in text for letter in ".e") else f"{text}.0"


def literal(value: object) -> str:
    """A value of a config: numbers, choices, None, and arrays of them."""
    if value is None:
        return "None"
    if isinstance(value, Rust):
        return str(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    return number(value)


class Rust(str):
    """A text that is Rust already."""

    __slots__ = ()


def identifier(name: str, prefix: str = "layer") -> str:
    """A name that Rust accepts for a field: digits get a word before them.

    Example:
        >>> identifier("conv1"), identifier("0"), identifier("type"), identifier("a-b")
        ('conv1', 'layer0', 'type_', 'a_b')
    """
    made = re.sub(r"\W", "_", name, flags=re.ASCII)
    if made[:1].isdigit():
        made = prefix + made
    if made in KEYWORDS or not made.strip("_"):
        made += "_"
    return made


def field_name(name: str, taken: Collection[str] = ()) -> str:
    """The same for a field of a struct, which Burn's derives accept, too.

    Example:
        >>> field_name("device"), field_name("a-b", ["a_b"])
        ('device_', 'a_b_2')
    """
    made = word = identifier(name) + "_" * (identifier(name) in DERIVED)
    count = 1
    while made in taken:
        count += 1
        made = f"{word.rstrip('_')}_{count}"
    return made


def type_name(name: str) -> str:
    """A name that Rust accepts for a type, in its spelling.

    Example:
        >>> type_name("features"), type_name("_Block"), type_name("res_block")
        ('Features', 'Block', 'ResBlock')
    """
    parts = re.sub(r"\W", "_", name, flags=re.ASCII).split("_")
    made = "".join(part[:1].upper() + part[1:] for part in parts)
    return made if made[:1].isalpha() else f"Layer{made}"


def snake_case(name: str) -> str:
    """The name of a class as that of a field.

    Example:
        >>> snake_case("MaxPool2d"), snake_case("PRelu"), snake_case("GLU")
        ('max_pool2d', 'p_relu', 'glu')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def indented(lines: Iterable[str], depth: int = 1) -> list[str]:
    """Lines, each so many levels deep; empty ones stay empty."""
    return [f"{'    ' * depth}{line}" if line else "" for line in lines]


def quoted(text: str) -> str:
    """A text as Rust writes it between quotes.

    Example:
        >>> print(quoted('a "name"\\n'))
        "a \\"name\\"\\u{a}"
    """
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    made = [c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in text]
    return f'"{"".join(made)}"'


def plain(text: Any) -> str:
    """A text that stands in a comment: one line of printed letters.

    Example:
        >>> plain("Net\\npub fn planted() {}")
        'Net pub fn planted() {}'
    """
    return printable(re.sub(r"\s+", " ", str(text)).strip())


TOKEN = re.compile(
    r"""
    (?P<comment> //[^\n]* )
  | (?P<text> b?"(?:[^"\\]|\\.)*" )
  | (?P<letter> b?'(?:[^'\\\n]|\\[^\n]+?)' )
  | (?P<lifetime> '[A-Za-z_]\w* )
  | (?P<number> \d[\w]*(?:\.\d\w*)?(?:(?<=[eE])[+-]\d+)? )
  | (?P<word> (?:r\#)?[A-Za-z_]\w* )
  | (?P<sign> [-+*/%^!&|=<>@.,;:\#$?~(){}\[\]] )
  | (?P<space> \s+ )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
PAIRS = {")": "(", "]": "[", "}": "{"}


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """The tokens of Rust source, each with its sort; comments are among them.

    Raises:
        RecordError: something is no token, or brackets do not fit.

    Example:
        >>> list(tokens("let x = 1e-5; // x"))[3:]
        [('number', '1e-5'), ('sign', ';'), ('comment', '// x')]
    """
    place, opened = 0, list[str]()
    while place < len(text):
        found = TOKEN.match(text, place)
        if found is None:
            raise _no_rust(text, place)
        sort, token = str(found.lastgroup), found[0]
        if sort == "comment" and not token.isprintable():
            raise _no_rust(text, place)
        if sort == "sign" and token in "([{":
            opened.append(token)
        elif token in PAIRS and (not opened or opened.pop() != PAIRS[token]):
            raise _no_rust(text, place)
        if sort != "space":
            yield sort, token
        place = found.end()
    if opened:
        raise _no_rust(text, len(text))


def checked(text: str) -> str:
    """A text that was written as Rust, if its tokens are those of Rust."""
    for _ in tokens(text):
        pass
    return text


def _no_rust(text: str, place: int) -> RecordError:
    count = text.count("\n", 0, place) + 1
    line = printable(text.splitlines()[min(count, len(text.splitlines())) - 1])
    what = "the source that was written for this is no Rust"
    facts = [(f"line {count}", line.strip()[:120])]
    return RecordError("to_rust", what, facts, cure="shorter, plainer names")
