"""Pages, folders and files of saved work for tests, honest ones and forged ones."""

import hashlib
import json
import zipfile
from dataclasses import dataclass

import nbformat

from burnbook.cli.workspace.contents import LIST


def page(path, text):
    """A notebook of one cell; a file that ends in .py is that text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".py":
        path.write_text(text)
        return
    cell = nbformat.v4.new_code_cell(text, id="one")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)


def tree(folder):
    """Every ordinary file below a folder, and its bytes."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


@dataclass
class Member:
    data: bytes
    unit: str = ""
    mode: int = 0o100644
    size: int | None = None  # what the list says


def member(data, unit="", mode=0o100644, size=None):
    return Member(data, unit, mode, size)


def forged(path, members, version=1, header=None):
    """A zip file with a list that fits it, except where a member says otherwise.

    header: the size that the zip file itself tells for each member.
    """
    listed = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, each in members.items():
            made = each if isinstance(each, Member) else Member(each)
            info = zipfile.ZipInfo(name)
            info.external_attr = made.mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, made.data)
            size = len(made.data) if made.size is None else made.size
            sha = hashlib.sha256(made.data).hexdigest()
            entry = {"path": name, "size": size, "sha256": sha}
            listed.append({**entry, "unit": made.unit} if made.unit else entry)
            if header is not None:
                archive.getinfo(name).file_size = header
        content = {"format": version, "burnbook": "9.9.9", "files": listed}
        archive.writestr(LIST, json.dumps(content))
    return path
