"""Your work in one file: to take it away, and to bring it back.

A server on the web forgets what you did there. `save_work` puts the pages that you have
changed and the folders of your trainings into one zip file, and `restore_work` brings
them back, there or on your own computer. Neither trusts what it reads.
"""

import sys

from burnbook.cli.workspace.places import find_folder
from burnbook.cli.workspace.restoring import Restored, restore_work
from burnbook.cli.workspace.saving import Saved, save_work
from burnbook.core.arguments import checks_arguments

__all__ = ["Restored", "Saved", "find_folder", "restore_work", "save_work"]

checks_arguments(sys.modules[__name__], __all__)
