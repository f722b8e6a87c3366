"""How an error of the library looks in IPython and Jupyter.

The message comes first, then the lines that the reader wrote, then the place in the
library that was called from there. The frames in between are left out;
`show_library_frames()` brings them back. IPython asks an exception for
`_render_traceback_`, so nothing of IPython is imported or changed here.
"""

import sys
import sysconfig
from pathlib import Path
from types import TracebackType
from typing import Any

_shown = {"library frames": False}
_HERE = Path(__file__).parents[1]
OURS = ("burnbook", "burnbook_widgets")
HOSTS = ("IPython", "ipykernel")
HINT = (
    "\x1b[2mThe frames inside burnbook are hidden; "
    "burnbook.core.errors.show_library_frames() shows them.\x1b[0m"
)
_INSTALLED = tuple(
    sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def show_library_frames(shown: bool = True) -> None:
    """Show every frame of an error in IPython and Jupyter, the library's own included.

    It holds for all errors from now on; `show_library_frames(False)` hides them again.
    """
    _shown["library frames"] = shown


def render(error: BaseException) -> list[str]:
    """What IPython prints for an error: the message, then the reader's lines."""
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    view = shell.InteractiveTB
    kind, trace = type(error), error.__traceback__
    kept, entered = readers_frames(trace)
    chosen = view.mode in ("Context", "Verbose")  # %xmode's others have their own order
    if _shown["library frames"] or kept is None or not chosen:
        return view.structured_traceback(kind, error, trace)
    top, *rest = view.structured_traceback(kind, error, kept, 0)
    message = "\n".join(view.get_exception_only(kind, error)).rstrip()
    frames = [
        part
        for part in rest
        if "Traceback (most recent call last)" not in part and str(error) not in part
    ]
    return [top, f"{message}\n", *frames, *([entered] if entered else []), HINT]


def readers_frames(
    trace: TracebackType | None,
) -> tuple[TracebackType | None, str | None]:
    """The frames outside the library, and the place where they entered it.

    Frames of installed packages count as the reader's only above the first of burnbook:
    below it they are what the library called. None and None if no frame is the reader's
    or none is the library's.
    """
    frames: list[TracebackType] = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    ours = [n for n, one in enumerate(frames) if _package(one) in OURS]
    kept = [
        n
        for n, one in enumerate(frames)
        if _package(one) not in (*OURS, *HOSTS)
        and not (_is_installed(one) and ours and n > ours[0])
        and not _runs_cells(one)
    ]
    if not kept or not ours:
        return None, None
    chain: TracebackType | None = None
    for n in reversed(kept):
        one = frames[n]
        chain = TracebackType(chain, one.tb_frame, one.tb_lasti, one.tb_lineno)
    entered = [n for n in ours if n > kept[-1]]
    return chain, _place(frames[entered[0]]) if entered else None


def _package(one: TracebackType) -> str:
    return str(one.tb_frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_installed(one: TracebackType) -> bool:
    return one.tb_frame.f_code.co_filename.startswith(_INSTALLED)


def _runs_cells(one: TracebackType) -> bool:
    """Whether a frame only starts the reader's code: asyncio, threads, runpy."""
    return _is_installed(one) and _package(one) in sys.stdlib_module_names


def _place(one: TracebackType) -> str:
    """ "File burnbook/nn/linear.py:88, in Linear.forward", without the folder above."""
    code = one.tb_frame.f_code
    try:
        path = Path(code.co_filename).relative_to(_HERE.parent).as_posix()
    except ValueError:
        path = Path(code.co_filename).name
    return f"File {path}:{one.tb_lineno}, in {code.co_qualname}"
