"""LineFile: lines that are written while a command runs.

If a line cannot be written, the line is dropped, and the command continues. Of several dropped
lines in a row, only the first is reported on standard error.
"""

from __future__ import annotations

import sys
from io import FileIO
from pathlib import Path


class LineFile:
    """Appends lines to a file; `is_incomplete` is True if a line was dropped."""

    def __init__(self, option: str, path: Path, file: FileIO) -> None:
        """Keep the unbuffered `file` for later writes; error messages name `option` and `path`."""
        self.is_incomplete = False
        self._option = option
        self._file = file
        self._path = path
        self._is_failing = False
        self._rest = b""  # The unwritten rest of a partially written line.

    def write(self, line: bytes) -> None:
        """Write `line`, which includes its newline; drop it if it cannot be written."""
        try:
            self._rest = self._written(self._rest)
            rest = line if self._rest else self._written(line)
        except OSError as cause:
            self._lose(cause.strerror or str(cause))
            return
        if rest == line:
            self._lose("is read too slowly")
            return
        self._rest = self._rest or rest
        self._is_failing = False

    def _written(self, text: bytes) -> bytes:
        """Write as much of `text` as possible; return the unwritten rest. Raises OSError."""
        return text[self._file.write(text) or 0 :] if text else text

    def _lose(self, why: str) -> None:
        if not self._is_failing:
            problem = f"{self._path}: {why}: lines are missing"
            print(f"fairlead: {self._option}: {problem}", file=sys.stderr, flush=True)
        self._is_failing = self.is_incomplete = True
