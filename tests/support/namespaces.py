"""What the names of packages mean. It imports nothing of ours before it is asked."""

import ast
import importlib
import pkgutil
import sys
from pathlib import Path
from types import ModuleType


def packages(root: Path, *tops: str) -> list[str]:
    """The names of all packages, found without importing any."""
    found = []
    for top in tops:
        for file in sorted((root / top.replace(".", "/")).rglob("__init__.py")):
            parts = file.parent.relative_to(root).parts
            found.append(".".join(parts))
    return found


def look(name: str) -> list[str]:
    """What is wrong with the names of a package, in a process that imports only it."""
    package = importlib.import_module(name)
    files = [each.name for each in pkgutil.iter_modules(package.__path__)]
    wrong = [
        f"{name}.__all__ has the module {public!r}: a star import replaces the reader's"
        for public in sorted({*getattr(package, "__all__", ())} & {*files})
        if isinstance(getattr(package, public), ModuleType)
    ]
    return wrong + [text for file in files if (text := _hides(package, file))]


def _hides(package: ModuleType, file: str) -> str | None:
    """A public name may be that of a file, if it means the same in every process."""
    full = f"{package.__name__}.{file}"
    value = getattr(package, file, None)
    if value is None or value is sys.modules.get(full):
        return None
    if file not in _exported(package):
        return f"{full} is a file, and a {type(value).__name__} of that name hides it"
    if full not in sys.modules:
        return f"{full}: importing the file would change what the name means"
    return None


def _exported(package: ModuleType) -> set[str]:
    """What a package lists in `__all__`, or imports under its own name (`x as x`)."""
    tree = ast.parse(Path(package.__file__ or "").read_text("utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    named = {a.name for node in imports for a in node.names if a.name == a.asname}
    return named | {*getattr(package, "__all__", ())}
