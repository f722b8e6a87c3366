"""A file imports only from lower floors or its own folder, and never in a circle.

Every import counts: at the top, in a function, for types alone, and by the name of a
module in a call of `import_module`.
"""

import ast
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# From the ground up: what stands in a row may use the rows above it in this list.
FLOORS = """
core
text
ops
backend
tensor
config
module
nn
grad_clipping
optim
lr_scheduler
data
record
program
train
importers
exporters examples rust
reference
prelude
__init__
cli
__main__
""".strip().splitlines()
# What a file finds by name when it is needed, on a higher floor: that floor is asked
# for nothing before all of them are there.
LATE = {
    "burnbook.backend.fusion.fusion": {"burnbook.program.compiler.streams"},
    "burnbook.module.files": {"burnbook.record.native"},
    "burnbook.record.inspection": {"burnbook.importers.tensor_file"},
    # Only names: of what users know from elsewhere, of their own lines, of types.
    "burnbook.core.other_names": {
        *("burnbook.nn", "burnbook.prelude", "burnbook.tensor"),
        *("burnbook.tensor.activation", "burnbook.tensor.module"),
    },
    "burnbook.core.arguments": {"burnbook.backend", "burnbook.ops"},
    "burnbook.backend.fusion.stream": {"burnbook.examples"},
    "burnbook.program.recording": {"burnbook.examples"},
    "burnbook.module.fields": {"burnbook.nn"},
}
FLOOR_OF = {name: floor for floor, row in enumerate(FLOORS) for name in row.split()}


@dataclass(frozen=True)
class Import:
    """One import of one burnbook module by another: who, what, where."""

    source: str  # "burnbook.ops.linear"
    target: str
    place: str  # "burnbook/ops/linear.py:3"
    text: str


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_modules(root: Path, package: str = "burnbook") -> dict[str, Path]:
    files = sorted((root / package).rglob("*.py"))
    return {module_name(path, root): path for path in files}


def imported_names(node: ast.AST, module: str, is_package: bool) -> list[str]:
    """Return absolute names, the longest reading: `from a import b` gives `a.b`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.Call) and node.args:
        called = ast.unparse(node.func).rpartition(".")[2]
        named = node.args[0]
        is_text = isinstance(named, ast.Constant) and isinstance(named.value, str)
        return [named.value] if called == "import_module" and is_text else []
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        parts = module.split(".")
        home = parts if is_package else parts[:-1]
        home = home[: len(home) - node.level + 1]
        base = ".".join([*home, *([node.module] if node.module else [])])
    return [f"{base}.{alias.name}" for alias in node.names]


def known_module(name: str, modules: dict[str, Path]) -> str | None:
    """`burnbook.core.errors.ShapeError` is in `burnbook.core.errors`."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name or None


def read_imports(root: Path, package: str = "burnbook") -> list[Import]:
    """Every import between files of a package: at the top, in functions, for types."""
    modules = read_modules(root, package)
    found = []
    for module, path in modules.items():
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            for name in imported_names(node, module, path.name == "__init__.py"):
                target = known_module(name, modules)
                if target and target != module:
                    place = f"{path.relative_to(root)}:{node.lineno}"
                    line = lines[node.lineno - 1].strip()
                    found.append(Import(module, target, place, line))
    return found


def part(module: str) -> str:
    """`burnbook.ops.linear` belongs to `ops`; `burnbook` itself is `__init__`."""
    return [*module.split("."), "__init__"][1]


def between_rooms(imports: list[Import]) -> list[Import]:
    """The same imports between the rooms: files and folders at the top of a package."""
    pairs = [(part(one.source), part(one.target), one) for one in imports]
    return [
        Import(source, target, one.place, one.text)
        for source, target, one in pairs
        if source != target
    ]


def wrong_floors(imports: list[Import]) -> list[str]:
    wrong = []
    for one in imports:
        source, target = part(one.source), part(one.target)
        if source == target or FLOOR_OF[target] < FLOOR_OF[source]:
            continue
        wrong.append(
            f"{one.place}: {source} (floor {FLOOR_OF[source]}) imports {target} "
            f"(floor {FLOOR_OF[target]}): {one.text}"
        )
    return wrong


def circles(imports: list[Import]) -> list[str]:
    """Follow the imports: a module met again while it is still open is a circle."""
    edges: dict[str, dict[str, Import]] = {}
    for one in imports:
        edges.setdefault(one.source, {}).setdefault(one.target, one)
    found, done = [], set()

    def visit(module: str, open_modules: tuple[str, ...]) -> None:
        if module in open_modules:
            loop = [*open_modules[open_modules.index(module) :], module]
            places = [
                f"  {edges[a][b].place}: {edges[a][b].text}" for a, b in pairwise(loop)
            ]
            found.append(" -> ".join(loop) + "\n" + "\n".join(places))
        elif module not in done:
            for target in edges.get(module, {}):
                visit(target, (*open_modules, module))
            done.add(module)

    for module in edges:
        visit(module, ())
    return found


def test_every_file_has_a_floor():
    strangers = {part(name) for name in read_modules(ROOT)} - set(FLOOR_OF)
    assert not strangers, (
        f"give them a floor in tests/package/test_floors.py: {strangers}"
    )


def test_files_import_only_from_lower_floors():
    wrong = wrong_floors(read_imports(ROOT))
    assert not wrong, "\n".join(["imports that climb:", *wrong])


def named_modules(root: Path) -> set[tuple[str, str]]:
    """Pairs of a module and another one that its text names in full, in quotes."""
    modules = read_modules(root)
    return {
        (module, node.value)
        for module, path in modules.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and node.value in modules
        and "." in node.value
    }


def test_what_is_found_by_name_on_higher_floors_is_listed():
    climbing = {
        (source, target)
        for source, target in named_modules(ROOT)
        if FLOOR_OF[part(target)] > FLOOR_OF[part(source)]
    }
    assert climbing == {(source, one) for source, row in LATE.items() for one in row}


PACKAGES = [(ROOT, "burnbook"), (ROOT / "widgets", "burnbook_widgets")]


@pytest.mark.parametrize(("root", "package"), PACKAGES)
def test_no_file_imports_itself_through_others(root, package):
    imports = read_imports(root, package)
    assert len(imports) > 50
    found = circles(imports)
    assert not found, "\n".join(["imports in a circle:", *found])


@pytest.mark.parametrize(("root", "package"), PACKAGES)
def test_no_room_imports_itself_through_others(root, package):
    found = circles(between_rooms(read_imports(root, package)))
    assert not found, "\n".join(["rooms in a circle:", *found])


def test_the_core_never_names_the_widgets():
    named = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in read_modules(ROOT).values()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in imported_names(node, "", False)
        if name.partition(".")[0] == "burnbook_widgets"
    ]
    assert not named, f"burnbook/ imports a widget: {named}"


def test_widgets_use_only_public_names():
    private = []
    for path in sorted((ROOT / "widgets").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for name in imported_names(node, "burnbook_widgets.x", False):
                if name.startswith("burnbook.") and "._" in name:
                    private.append(f"{path.relative_to(ROOT)}:{node.lineno}: {name}")
    assert not private, "\n".join(private)


# The rules themselves, on a house of four rooms.


@pytest.fixture
def house(tmp_path):
    def build(**files):
        for name, text in files.items():
            path = tmp_path / "burnbook" / (name.replace("__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (tmp_path / "burnbook" / "__init__.py").write_text("", encoding="utf-8")
        return read_imports(tmp_path)

    return build


def test_an_import_from_a_higher_floor_is_shown_with_its_line(house):
    imports = house(ops="from burnbook.tensor import Tensor\n", tensor="")
    assert wrong_floors(imports) == [
        f"burnbook/ops.py:1: ops (floor {FLOOR_OF['ops']}) "
        f"imports tensor (floor {FLOOR_OF['tensor']}): "
        "from burnbook.tensor import Tensor"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    import burnbook.tensor\n",
        "import typing\nif typing.TYPE_CHECKING:\n    from .tensor import Tensor\n",
        "from burnbook import tensor\n",
        "import burnbook\n",
        "from importlib import import_module\nimport_module('burnbook.tensor')\n",
    ],
)
def test_hidden_imports_count_too(house, text):
    assert len(wrong_floors(house(ops=text, tensor=""))) == 1


def test_lower_floors_and_the_own_folder_are_fine(house):
    imports = house(
        core__errors="",
        ops__linear="from burnbook.core.errors import Error\nfrom .shape import rank\n",
        ops__shape="",
    )
    assert wrong_floors(imports) == []
    assert circles(imports) == []


def test_a_circle_is_shown_with_its_lines(house):
    imports = house(ops__a="from .b import x\n", ops__b="from . import a\n")
    (circle,) = circles(imports)
    assert "burnbook/ops/a.py:1: from .b import x" in circle
    assert "burnbook/ops/b.py:1: from . import a" in circle
