"""Machine code of kernels, kept in files and run without the compiler.

Numba and LLVM take half a second and 120 MB to import. What they have compiled is an
ELF object file that needs neither: its code, a table of places where addresses of other
functions belong (Python's, NumPy's mathematics, numba's small helpers in C), and the
names of those functions. `read` puts the code into memory, fills in the addresses, and
gives a function that Python calls without detours.

Only Linux on x86-64 has it. `read` gives None for whatever it does not know, and the
kernel is then taken from numba's own cache, or compiled.

Source: the System V ABI, with its supplement for AMD64 (relocation R_X86_64_64).
"""

import builtins
import ctypes
import importlib.util
import mmap
import platform
import struct
import sys
import zlib
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, NamedTuple

from burnbook.core.files import atomic_write

LOADED, NOBITS, UNWINDING = 2, 8, 0x70000001  # a flag and two types of sections
SYMBOLS, RELOCATIONS = 2, 4  # types of sections that are tables
OUTSIDE, COMMON = 0, 0xFFF2  # where a symbol is if it is in no section
ADDRESS = 1  # the only relocation there is: 64 bits of an address
READ_AND_RUN = 5
PAGE = 1 << 12
HELPERS = {
    "numba._helperlib": "numba_",
    "numba._dynfunc": "numba_",
    "numba.core.runtime._nrt_python": "NRT_",
}


class Unknown(Exception):
    """An object file holds something that cannot be loaded here."""


def is_supported() -> bool:
    """Whether machine code is kept here: on Linux, for x86-64."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def write(path: Path, code: Any, arguments: Any) -> None:
    """Keep what numba has compiled for these types of arguments.

    Raises:
        DataError: it could not be written.
    """
    compiled = code.overloads[arguments]
    names = (compiled.fndesc.llvm_cpython_wrapper_name, compiled.fndesc.env_name)
    content = compiled.library._get_compiled_object()
    found = "\n".join([*names, ""]).encode() + content
    with atomic_write(path) as file:
        file.write(f"{_checksum(path, found)}\n".encode() + found)


def read(path: Path) -> Any:
    """The function that is kept in a file; None where it cannot be had this way."""
    try:
        check, found = path.read_bytes().split(b"\n", 1)
        if int(check) != _checksum(path, found):
            return None
        caller, environment, content = found.split(b"\n", 2)
        memory, symbols = ObjectFile(content).load()
        place = symbols[environment.decode()]
        helper = _helpers()["numba._dynfunc"]
        owner = helper.Environment({})
        ctypes.c_void_p.from_address(place).value = id(owner)
        function = symbols[caller.decode()]
        _protect(memory)
    except (Unknown, OSError, ValueError, LookupError, AttributeError, ImportError):
        return None
    module = sys.modules[__name__]
    return helper.make_function(module, path.stem, "", function, owner, (owner,))


def _checksum(path: Path, content: bytes) -> int:
    """What tells that a file is as it was written, and under its own name."""
    return zlib.crc32(content, zlib.crc32(path.name.encode()))


class Section(NamedTuple):
    """A stretch of an object file, as its table of sections lists it."""

    name: int
    kind: int
    flags: int
    address: int
    start: int
    size: int
    link: int
    info: int
    alignment: int
    each: int


class Symbol(NamedTuple):
    """A name of an object file."""

    name: int
    kind: int
    other: int
    section: int
    value: int
    size: int


class ObjectFile:
    """What an object file holds: sections, and the symbols that they define or need."""

    def __init__(self, content: bytes):
        if content[:6] != b"\x7fELF\x02\x01":
            raise Unknown
        self.content = content
        (at,) = struct.unpack_from("<Q", content, 40)
        (count,) = struct.unpack_from("<H", content, 60)
        self.sections = [
            Section(*struct.unpack_from("<IIQQQQIIQQ", content, at + 64 * i))
            for i in range(count)
        ]
        table = next(s for s in self.sections if s.kind == SYMBOLS)
        self.symbols = [
            Symbol(*struct.unpack_from("<IBBHQQ", content, at))
            for at in range(table.start, table.start + table.size, 24)
        ]
        self.names = self.sections[table.link].start

    def name(self, symbol: Symbol) -> str:
        """What a symbol is called."""
        start = self.names + symbol.name
        return self.content[start : self.content.index(b"\0", start)].decode()

    def arrange(self) -> tuple[dict[int, int], dict[int, int], int]:
        """Where sections and common symbols will be in memory, and where that ends."""
        sections, common, end = {}, {}, 0
        for i, section in enumerate(self.sections):
            if section.flags & LOADED and section.kind != UNWINDING:
                sections[i] = _rounded(end, section.alignment)
                end = sections[i] + section.size
        for i, symbol in enumerate(self.symbols):
            if symbol.section == COMMON:
                common[i] = _rounded(end, symbol.value)
                end = common[i] + symbol.size
        return sections, common, end

    def load(self) -> tuple[mmap.mmap, dict[str, int]]:
        """Put the code into memory; gives that, and where each symbol is there."""
        sections, common, end = self.arrange()
        memory = mmap.mmap(-1, _rounded(end, PAGE))
        base = _address(memory)
        for i, place in sections.items():
            section = self.sections[i]
            if section.kind != NOBITS:
                found = self.content[section.start : section.start + section.size]
                memory[place : place + section.size] = found
        addresses: dict[int, int] = {}
        for i, symbol in enumerate(self.symbols):
            if symbol.section == COMMON:
                addresses[i] = base + common[i]
            elif symbol.section in sections:
                addresses[i] = base + sections[symbol.section] + symbol.value
            elif symbol.section == OUTSIDE and symbol.name:
                addresses[i] = _outside(self.name(symbol))
        for section in self.sections:
            if section.kind == RELOCATIONS and section.info in sections:
                self.fill_in(section, memory, sections[section.info], addresses)
        named = {self.name(self.symbols[i]): at for i, at in addresses.items()}
        return memory, named

    def fill_in(
        self,
        table: Section,
        memory: mmap.mmap,
        place: int,
        addresses: dict[int, int],
    ) -> None:
        """Write the addresses that a table asks for into the section at a place."""
        for at in range(table.start, table.start + table.size, 24):
            offset, what, more = struct.unpack_from("<QQq", self.content, at)
            if what & 0xFFFFFFFF != ADDRESS:
                raise Unknown
            address = addresses[what >> 32] + more
            struct.pack_into("<Q", memory, place + offset, address)


def _rounded(size: int, step: int) -> int:
    return -(-size // max(step, 1)) * max(step, 1)


def _address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _protect(memory: mmap.mmap) -> None:
    """Let code in memory be run, and no longer be written to; it stays to the end."""
    change = ctypes.CDLL(None, use_errno=True).mprotect
    change.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if change(_address(memory), len(memory), READ_AND_RUN):
        raise OSError(ctypes.get_errno(), "machine code may not be run here")
    _in_use.append(memory)


_in_use: list[mmap.mmap] = []


@cache
def _outside(name: str) -> int:
    """Where a function is that the code does not bring with it."""
    for module, prefix in HELPERS.items():
        known = _helpers()[module].c_helpers
        short = name if name.startswith("_") else name.removeprefix(prefix)
        if short in known and (short != name or name.startswith("_")):
            return known[short]
    if name == "_Py_NoneStruct":
        return id(None)
    if name.startswith("PyExc_"):
        return id(getattr(builtins, name.removeprefix("PyExc_")))
    library = ctypes.pythonapi if name.startswith("Py") else ctypes.CDLL(None)
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


@cache
def _helpers() -> dict[str, Any]:
    """Numba's helpers in C, without the rest of numba; it finds them if it comes."""
    found: dict[str, Any] = {}
    numba = importlib.util.find_spec("numba")
    folders = numba.submodule_search_locations if numba is not None else None
    if not folders:
        raise ImportError("numba")
    for name in HELPERS:
        if name not in sys.modules:
            inside = Path(folders[0], *name.split(".")[1:-1])
            spec = PathFinder.find_spec(name, [str(inside)])
            if spec is None or spec.loader is None:
                raise ImportError(name)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            sys.modules[name] = module
            if hasattr(module, "memsys_use_cpython_allocator"):
                module.memsys_use_cpython_allocator()
        found[name] = sys.modules[name]
    return found
