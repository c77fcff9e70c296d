"""The names that `--name` can give to a local cluster; they are also parts of file names."""

from __future__ import annotations

import re
from typing import Final

from fairlead.whatif.input.error import InputError

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


def check_cluster_name(name: str) -> None:
    """Raise InputError if a local cluster cannot have this name."""
    if not _NAME.fullmatch(name):
        problem = "must consist of letters, digits, '-', '_' and '.', and begin with a letter"
        raise InputError("--name", problem, object_name=name)
