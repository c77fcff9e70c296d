"""data_folder: finds the data files of a package.

importlib.resources is not used, because it loads zipfile, tempfile and lzma, which slows down short
commands.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[1]


def data_folder(package: str) -> Path:
    """Return the folder `data` of `package`, such as "fairlead.api"."""
    return _ROOT.joinpath(*package.split(".")[1:], "data")
