"""data_folder: finds the data files of a package.

Data files are read by their path, because importlib.resources loads zipfile, tempfile and lzma,
which a short command does not need.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[1]


def data_folder(package: str) -> Path:
    """Return the folder `data` of `package`, such as "fairlead.api"."""
    return _ROOT.joinpath(*package.split(".")[1:], "data")
