"""A reader of pickles that runs nothing: data only, and names from a list.

A pickle is a program for a small machine with a stack. Python's own runs whatever a
file names; this one makes numbers, texts, lists, tuples, sets and maps itself, and asks
`Names` about everything else. A name that is not listed is refused, so there is nothing
that a file could have imported or called. Sizes are compared with the bytes that are
there before anything is made.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

from burnbook.record.tree import Trouble, short

LONGEST_INT = 256  # bytes of a whole number; a hash or a seed has 32
LONGEST_LINE = 1 << 16
MAX_KEY_PARTS = 16  # of a tuple that is a key of a map
MOST_STEPS = 8_000_000  # of a pickle: 200,000 tensors; a text of 4 bytes takes 60


@dataclass(frozen=True)
class Name:
    """A class or function that a pickle names; only its name is known here."""

    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(eq=False)
class Inert:
    """An object of a class that is not listed: what the pickle says of it, no more.

    name: of the class. args: what it would have been made from. state: its attributes.
    rows, parts: what is in it, of a class that is also a map or a list.
    """

    name: str
    args: tuple[Any, ...] = ()
    state: Any = None
    rows: dict[Any, Any] = field(default_factory=dict)
    parts: list[Any] = field(default_factory=list)

    def __str__(self) -> str:
        if self.name.startswith("numpy.") and self.name.endswith("multiarray.scalar"):
            return "a number of NumPy"
        if self.name.startswith("numpy.") and self.name.endswith("ndarray"):
            return "an array of NumPy"
        return f"an object of the class {short(self.name, 80)}"

    def __repr__(self) -> str:
        return f"Inert({self.name})"


class Names(Protocol):
    """What the names and ids in a pickle mean."""

    def look_up(self, name: str) -> object:
        """What stands for a class or function; raises Trouble for one not listed."""
        ...

    def call(self, name: Name, args: tuple[Any, ...]) -> object:
        """What calling it with these arguments gives."""
        ...

    def build(self, made: object, state: object) -> object:
        """An object after a pickle has set its state."""
        ...

    def persistent(self, key: object) -> object:
        """What an id stands for, which the file holds outside of the pickle."""
        ...


class PickleReader:
    """Reads one pickle after the other from bytes; `at` is where the next one begins.

    Example:
        >>> import pickle
        >>> PickleReader(pickle.dumps({"step": 3, "sizes": (1, 2)})).load()
        {'step': 3, 'sizes': (1, 2)}
    """

    def __init__(
        self, data: bytes | memoryview, names: Names | None = None, at: int = 0
    ) -> None:
        self.data = memoryview(data)
        self.names: Names = names or PlainNames()
        self.at = at
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        # A list is one byte in a pickle and sixty in memory.
        self.room = 10_000 + len(self.data) // 4

    def load(self) -> Any:
        """The value of the next pickle.

        Raises:
            Trouble: it is damaged or too large, or names what is not listed.
        """
        self.stack, self.marks, self.memo = [], [], {}
        steps, left = STEPS, MOST_STEPS
        while True:
            code = self.byte()
            if code == STOP:
                break
            step = steps.get(code)
            if step is None:
                raise Trouble(*self.unknown(code))
            step(self)
            left -= 1
            if left < 0:
                raise Trouble("the pickle holds more values than any model has")
        if len(self.stack) != 1 or self.marks:
            raise Trouble("the pickle does not end with one value")
        return self.stack.pop()

    def unknown(self, code: int) -> tuple[str, str, str]:
        """What is wrong with an instruction, for Trouble."""
        name = REFUSED.get(code)
        if name:
            what = f"the pickle has the instruction {name}, which data does not need"
            return what, "", ""
        what = f"byte {self.at - 1} is no instruction of a pickle"
        return what, "", f"0x{code:02x}"

    # Bytes

    def byte(self) -> int:
        """The next byte."""
        if self.at >= len(self.data):
            self.ends()
        self.at += 1
        return self.data[self.at - 1]

    def take(self, count: int) -> bytes:
        """The next bytes, which must be there."""
        if count > len(self.data) - self.at:
            self.ends()
        self.at += count
        return bytes(self.data[self.at - count : self.at])

    def number(self, size: int) -> int:
        """A size or an index, the low byte first."""
        return int.from_bytes(self.take(size), "little")

    def line(self) -> str:
        """The text up to the end of the line."""
        return _text(self.raw_line())

    def raw_line(self) -> bytes:
        """The bytes up to the end of the line."""
        near, length = b"", -1
        for most in (256, LONGEST_LINE):  # nearly all are short, and there may be many
            if length < 0:
                near = bytes(self.data[self.at : self.at + most])
                length = near.find(b"\n")
        if length < 0:
            self.ends()
        self.at += length + 1
        return near[:length]

    def ends(self) -> NoReturn:
        """Raise: the bytes end too early."""
        raise Trouble("the pickle ends too early", found=f"{len(self.data)} bytes")

    # The stack

    def push(self, value: object) -> None:
        """Put a value onto the stack."""
        self.stack.append(value)

    def pop(self) -> Any:
        """Take a value from the stack, not one from before the last mark."""
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise Trouble("the pickle takes what it has not put")
        return self.stack.pop()

    def top(self) -> Any:
        """The value on the stack's top."""
        value = self.pop()
        self.stack.append(value)
        return value

    def marked(self) -> list[Any]:
        """Everything above the last mark."""
        if not self.marks:
            raise Trouble("the pickle takes what it has not put")
        start = self.marks.pop()
        found = self.stack[start:]
        del self.stack[start:]
        return found

    def several(self, count: int) -> tuple[Any, ...]:
        """So many values from the stack, the topmost last."""
        return tuple([self.pop() for _ in range(count)][::-1])

    def container(self, value: object) -> None:
        """Put a new list, map or tuple onto the stack, if there is room for more."""
        self.room -= 1
        if self.room < 0:
            raise Trouble("the pickle holds more lists than any model has")
        self.stack.append(value)

    # What instructions do

    def put(self, index: int) -> None:
        """Remember the top of the stack under a number."""
        value = self.top()
        if index > len(self.data):
            raise Trouble("the pickle remembers under an impossible number")
        self.memo[index] = value

    def get(self, index: int) -> None:
        """Put what was remembered onto the stack."""
        if index not in self.memo:
            raise Trouble("the pickle recalls what it has not remembered")
        self.stack.append(self.memo[index])

    def long(self, size: int) -> None:
        """A whole number of so many bytes."""
        if size > LONGEST_INT:
            what = "the pickle holds a huge whole number"
            raise Trouble(what, f"at most {LONGEST_INT} bytes", f"{size} bytes")
        self.stack.append(int.from_bytes(self.take(size), "little", signed=True))

    def decimal(self, text: str) -> None:
        """A whole number, or a truth value, written out."""
        if text in ("00", "01"):
            self.stack.append(text == "01")
            return
        digits = text.removesuffix("L")
        plain = digits.removeprefix("-")
        if not plain.isdecimal() or len(plain) > 2 * LONGEST_INT or not plain.isascii():
            raise Trouble(
                "the pickle has an impossible whole number", found=short(text)
            )
        self.stack.append(int(digits))

    def float_text(self) -> None:
        """A float, written out."""
        text = self.line()
        try:
            self.stack.append(float(text))
        except ValueError:
            raise Trouble("the pickle has an impossible number") from None

    def append(self, values: list[Any]) -> None:
        """Add values to the list on the stack's top."""
        target = self.top()
        target = target.parts if isinstance(target, Inert) else target
        if not isinstance(target, list):
            raise Trouble("the pickle adds to what is no list")
        target.extend(values)

    def insert(self, values: list[Any]) -> None:
        """Add pairs to the map on the stack's top."""
        target = self.top()
        target = target.rows if isinstance(target, Inert) else target
        if not isinstance(target, dict) or len(values) % 2:
            raise Trouble("the pickle adds pairs to what is no map")
        target.update(pairs(values))

    def add(self, values: list[Any]) -> None:
        """Add values to the set on the stack's top."""
        target = self.top()
        if isinstance(target, Inert):
            target.parts.extend(values)
            return
        if not isinstance(target, set):
            raise Trouble("the pickle adds to what is no set")
        target.update(map(key_of, values))

    def named(self, module: object, name: object) -> None:
        """A class or a function by its name."""
        if not isinstance(module, str) or not isinstance(name, str):
            raise Trouble("the pickle names something without a text")
        module = {"__builtin__": "builtins", "copy_reg": "copyreg"}.get(module, module)
        self.stack.append(self.names.look_up(f"{module}.{name}"))

    def reduce(self, name: object, args: object) -> None:
        """Call what was named."""
        if not isinstance(name, Name) or not isinstance(args, tuple):
            raise Trouble("the pickle calls what has no name")
        self.container(self.names.call(name, args))

    def build(self) -> None:
        """Set the state of an object."""
        made, state = self.several(2)
        self.stack.append(self.names.build(made, state))


class PlainNames:
    """No names at all: plain data only."""

    def look_up(self, name: str) -> object:
        """Refuse the name."""
        raise Trouble(*refused(name))

    def call(self, name: Name, args: tuple[Any, ...]) -> object:
        """Refuse the call."""
        raise Trouble(*refused(name.text))

    def build(self, made: object, state: object) -> object:
        """Refuse the state."""
        raise Trouble("the pickle sets the state of plain data")

    def persistent(self, key: object) -> object:
        """Refuse the id."""
        raise Trouble("the pickle speaks of storages that it does not hold")


STATE_DICT = 'torch.save(model.state_dict(), "model.pt") in PyTorch'


def refused(name: str) -> tuple[str, str, str, str]:
    """The trouble with a name that is not listed: what it is, and the cure."""
    shown = short(name, 80)
    if name.rpartition(".")[2][:1].isupper():
        what = f"it holds an object of the class {shown}, not only tensors"
        return what, "", "", STATE_DICT
    what = f"it wants to call {shown}, which was not done"
    return what, "", "", f"a file that you trust, written by {STATE_DICT}"


def key_of(value: object) -> Any:
    """A key of a map or a set: a number, a text, or a short tuple of these.

    Why: the hash of a tuple of tuples may take longer than the age of the world; and
    huge numbers can be chosen so that all have one hash, and a map of them a list.
    """
    if isinstance(value, tuple) and len(value) <= MAX_KEY_PARTS:
        if all(_is_plain_key(part, 1 << 32) for part in value):
            return value
    elif _is_plain_key(value, 1 << 64):
        return value
    raise Trouble("a map has a key that is neither a number nor a text")


def _is_plain_key(value: object, most: int) -> bool:
    if isinstance(value, int):
        return -most < value < most
    if isinstance(value, float):  # as a part of a tuple it may be any number again
        return most > 1 << 32
    return isinstance(value, PLAIN_KEYS)


def pairs(values: list[Any]) -> dict[Any, Any]:
    """A map from keys and values in turn."""
    if len(values) % 2:
        raise Trouble("a map has a key without a value")
    return {key_of(k): v for k, v in zip(values[::2], values[1::2], strict=True)}


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise Trouble("a text in the pickle is not Unicode") from None


def _old_text(raw: bytes) -> str:
    """A text of Python 2, which may be bytes."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _raw_text(machine: PickleReader) -> str:
    try:
        return machine.raw_line().decode("raw-unicode-escape")
    except UnicodeDecodeError:
        raise Trouble("a text in the pickle is not Unicode") from None


def _protocol(machine: PickleReader) -> None:
    if (version := machine.byte()) > 5:
        raise Trouble("this pickle is newer than any", "protocol 0 to 5", f"{version}")


def _frozen(machine: PickleReader) -> None:
    machine.container(frozenset(map(key_of, machine.marked())))


def _pop(machine: PickleReader) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.marks.pop()
    else:
        machine.pop()


def _name_and_args(machine: PickleReader, count: int) -> None:
    name, *rest = machine.several(count)
    machine.reduce(name, rest[0])
    if count == 3 and rest[1] and not isinstance(machine.top(), Inert):
        raise Trouble("the pickle makes an object with named arguments")


PLAIN_KEYS = (str, bytes, type(None), Name, Inert)
STOP = ord(".")
REFUSED = {
    ord("i"): "INST",
    ord("o"): "OBJ",
    ord("P"): "PERSID",
    ord("S"): "STRING",
    0x82: "EXT1",
    0x83: "EXT2",
    0x84: "EXT4",
    0x97: "NEXT_BUFFER",
    0x98: "READONLY_BUFFER",
}
Step = Callable[[PickleReader], object]
STEPS: dict[int, Step] = {
    0x80: _protocol,
    0x95: lambda m: m.take(8),  # FRAME
    # Plain values
    ord("N"): lambda m: m.push(None),
    0x88: lambda m: m.push(True),
    0x89: lambda m: m.push(False),
    ord("J"): lambda m: m.push(int.from_bytes(m.take(4), "little", signed=True)),
    ord("K"): lambda m: m.push(m.byte()),
    ord("M"): lambda m: m.push(m.number(2)),
    ord("I"): lambda m: m.decimal(m.line()),
    ord("L"): lambda m: m.decimal(m.line()),
    0x8A: lambda m: m.long(m.byte()),
    0x8B: lambda m: m.long(m.number(4)),
    ord("F"): lambda m: m.float_text(),
    ord("G"): lambda m: m.push(struct.unpack(">d", m.take(8))[0]),
    ord("X"): lambda m: m.push(_text(m.take(m.number(4)))),
    0x8C: lambda m: m.push(_text(m.take(m.byte()))),
    0x8D: lambda m: m.push(_text(m.take(m.number(8)))),
    ord("V"): lambda m: m.push(_raw_text(m)),
    ord("U"): lambda m: m.push(_old_text(m.take(m.byte()))),
    ord("T"): lambda m: m.push(_old_text(m.take(m.number(4)))),
    ord("B"): lambda m: m.push(m.take(m.number(4))),
    ord("C"): lambda m: m.push(m.take(m.byte())),
    0x8E: lambda m: m.push(m.take(m.number(8))),
    0x96: lambda m: m.push(m.take(m.number(8))),
    # Containers
    ord("("): lambda m: m.marks.append(len(m.stack)),
    ord(")"): lambda m: m.push(()),
    ord("]"): lambda m: m.container([]),
    ord("}"): lambda m: m.container({}),
    0x8F: lambda m: m.container(set()),
    ord("t"): lambda m: m.container(tuple(m.marked())),
    ord("l"): lambda m: m.container(m.marked()),
    ord("d"): lambda m: m.container(pairs(m.marked())),
    0x85: lambda m: m.container(m.several(1)),
    0x86: lambda m: m.container(m.several(2)),
    0x87: lambda m: m.container(m.several(3)),
    0x91: _frozen,
    ord("a"): lambda m: m.append([m.pop()]),
    ord("e"): lambda m: m.append(m.marked()),
    ord("s"): lambda m: m.insert(list(m.several(2))),
    ord("u"): lambda m: m.insert(m.marked()),
    0x90: lambda m: m.add(m.marked()),
    # The stack and what is remembered
    ord("0"): _pop,
    ord("1"): lambda m: m.marked(),
    ord("2"): lambda m: m.push(m.top()),
    ord("q"): lambda m: m.put(m.byte()),
    ord("r"): lambda m: m.put(m.number(4)),
    0x94: lambda m: m.put(len(m.memo)),
    ord("p"): lambda m: m.put(_index(m.line())),
    ord("h"): lambda m: m.get(m.byte()),
    ord("j"): lambda m: m.get(m.number(4)),
    ord("g"): lambda m: m.get(_index(m.line())),
    # Names
    ord("c"): lambda m: m.named(m.line(), m.line()),
    0x93: lambda m: m.named(*m.several(2)),
    ord("R"): lambda m: m.reduce(*m.several(2)),
    0x81: lambda m: _name_and_args(m, 2),
    0x92: lambda m: _name_and_args(m, 3),
    ord("b"): lambda m: m.build(),
    ord("Q"): lambda m: m.push(m.names.persistent(m.pop())),
}


def _index(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise Trouble("the pickle remembers under an impossible number")
    return int(text)
