"""`fairlead conformance KIND FILES…`: replays case files and says where we differ."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TextIO

from fairlead.conformance.comparison import CaseFileError, Difference, read_cases
from fairlead.conformance.kind import KINDS, Kind

Json = dict[str, Any]
Say = Callable[[str], None]
_SHOWN_PER_FILE: Final = 20


def _to(stream: TextIO) -> Say:
    def say(line: str) -> None:
        stream.write(f"{line}\n")
        stream.flush()

    return say


@dataclass(slots=True)
class FileResult:
    """What came of one file: how many cases, and the differences by case name."""

    path: Path
    cases: int = 0
    differences: list[tuple[str, Difference]] = field(default_factory=list)

    @property
    def agreements(self) -> int:
        """How many cases agree."""
        return self.cases - len(self.differences)

    def __str__(self) -> str:
        """One line."""
        return (
            f"{self.path.name}: {self.cases} cases, {self.agreements} agree, "
            f"{len(self.differences)} differ"
        )


def compare_file(kind: str, path: Path) -> FileResult:
    """Replay every case of `path`. Raises CaseFileError and OSError as `read_cases` does."""
    replayed, result = KINDS[kind], FileResult(path)
    for number, line in enumerate(read_cases(path, replayed.subject), 1):
        result.cases += 1
        name = str(line[replayed.subject].get("name", f"case {number}"))
        difference = _compare(replayed, path, name, line)
        if difference is not None:
            result.differences.append((name, difference))
    return result


def _compare(kind: Kind, path: Path, name: str, line: Json) -> Difference | None:
    try:
        return kind.compare(line["expect"], kind.decide(line[kind.subject]))
    except (ValueError, KeyError, TypeError, AttributeError) as cause:
        raise CaseFileError(f"{path}: {name}: {type(cause).__name__}: {cause}") from cause


def run(
    kind: str,
    files: Sequence[Path],
    say: Say | None = None,
    complain: Say | None = None,
) -> int:
    """Compare and tell; 0 where everything agrees, 1 on any difference, 2 on bad input.

    Lines go to standard output and standard error unless told otherwise.
    """
    say, complain = say or _to(sys.stdout), complain or _to(sys.stderr)
    if kind not in KINDS:
        known = ", ".join(sorted(KINDS))
        complain(f"fairlead conformance: no kind {kind!r}; known: {known}")
        return 2
    if not files:
        complain("fairlead conformance: no files given")
        return 2
    results: list[FileResult] = []
    try:
        for path in files:
            results.append(compare_file(kind, path))
            _tell(results[-1], say)
    except (CaseFileError, OSError) as problem:
        complain(f"fairlead conformance: {problem}")
        return 2
    total = sum(result.cases for result in results)
    differ = sum(len(result.differences) for result in results)
    say(f"total: {total} cases, {total - differ} agree, {differ} differ")
    return 1 if differ else 0


def _tell(result: FileResult, say: Say) -> None:
    say(str(result))
    for name, difference in result.differences[:_SHOWN_PER_FILE]:
        say(f"  {name}: {difference}")
    hidden = len(result.differences) - _SHOWN_PER_FILE
    if hidden > 0:
        say(f"  … and {hidden} more")
