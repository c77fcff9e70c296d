"""Checks that the output files of a command replace none of its inputs and differ from each other.

Commands call `require_distinct` before they read or write anything.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from fairlead.cli.output.atomic_file import require_writable
from fairlead.whatif.input.archive import PACKED_SUFFIXES, TEXT_SUFFIXES
from fairlead.whatif.input.error import InputError
from fairlead.worlds.standard_stream import is_standard_stream

# The separators in values that contain a file name, such as TYPES,PRICES or FILE.py:CLASS=WEIGHT
# or NAME:--apply FILE.
_SEPARATORS: Final = re.compile(r"[,:=\s'\"]+")
_SYSTEM_DIRECTORIES: Final = ("dev", "proc")


def require_distinct(
    outputs: Mapping[str, Path | None], *inputs: object, in_place: Container[str] = ()
) -> None:
    """Raise InputError for an output file that cannot be written or would destroy another file.

    `outputs` maps each option for an output file to the path of the file. The value None means that
    no file is written. `inputs` are the values of the command's other options and arguments: texts
    and paths, also inside collections, structs and dataclasses. A file is an input if its name is
    one of these paths or texts. Its name can also be a part of a text between separators such as
    `,` or `=`. If a directory is named, the snapshot files in the directory and its subdirectories
    are inputs. `in_place` contains the options whose output is written into the existing file. An
    output of any other option is a new file, which replaces the existing file. The file of
    standard output or standard error may be named only by a path in /dev or /proc.
    """
    given = {option: path for option, path in outputs.items() if path is not None}
    for option, path in given.items():
        require_writable(option, path, in_place=option in in_place)
    names = list(_names(inputs))
    for option, path in given.items():
        # Writing to a device or a pipe overwrites nothing, and a new file cannot be an input.
        if path.is_file() and any(_holds(Path(name), path) for name in names):
            problem = f"{path} is an input of this command; name another file"
            raise InputError(option, problem)
        # A user who writes /dev/stdout knows that the file also gets what the command prints.
        if is_standard_stream(path) and path.absolute().parts[1] not in _SYSTEM_DIRECTORIES:
            problem = f"{path} is also standard output or standard error; name another file"
            raise InputError(option, problem)
    _require_different(given)


def _require_different(outputs: Mapping[str, Path]) -> None:
    earlier: list[tuple[str, Path]] = []
    for option, path in outputs.items():
        for other, there in earlier:
            if _is_same(path, there) and (path.is_file() or not path.exists()):
                raise InputError(option, f"{path} is also the file of {other}; name another file")
        earlier.append((option, path))


def _names(value: object) -> Iterator[str]:
    """Yield each text in `value` that may be the name of a file."""
    match value:
        case "":  # An option without a value; as a path, this would be the current directory.
            return
        case str():
            yield value
            yield from filter(None, _SEPARATORS.split(value))
        case Path():
            yield str(value)
        case Mapping():
            yield from _names(tuple(value.values()))
        case Iterable():
            for one in value:
                yield from _names(one)
        case Struct():
            yield from _names(asdict(value))
        case _ if is_dataclass(value):
            for field in fields(value):
                yield from _names(getattr(value, field.name))


def _holds(source: Path, file: Path) -> bool:
    """Return whether `file` is `source`, or a snapshot file in the directory `source`."""
    if _is_same(source, file):
        return True
    try:
        is_below = source.is_dir() and file.resolve().is_relative_to(source.resolve())
    except (OSError, ValueError):  # The text cannot be a file name.
        return False
    return is_below and file.suffix in {*TEXT_SUFFIXES, *PACKED_SUFFIXES}


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.resolve() == other.resolve() or one.samefile(other)
    except (OSError, ValueError, RuntimeError):  # A file does not exist, or links form a loop.
        return False
