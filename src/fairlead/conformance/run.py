"""Replays case files and prints the mismatches, for `fairlead conformance`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, TextIO

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.conformance.case_kind import CORRECTED_KINDS, KINDS, CaseKind, Finding
from fairlead.conformance.comparison import CaseFileError, Mismatch, Remark, read_cases

Say = Callable[[str], None]
SHOWN_PER_FILE: Final = 20


def _to(stream: TextIO) -> Say:
    def say(line: str) -> None:
        stream.write(f"{line}\n")
        stream.flush()

    return say


class FileResult(Struct):
    """The result of one file: the number of its cases, its mismatches and its remarks.

    Each mismatch and each remark has the name of its case. A setup line counts as a case only if
    its request fails.
    """

    path: Path
    cases: int = 0
    differences: list[tuple[str, Mismatch]] = field(default_factory=list)
    remarks: list[tuple[str, Remark]] = field(default_factory=list)

    @property
    def agreements(self) -> int:
        """The number of cases in which Fairlead's decision equals the recorded one."""
        return self.cases - len(self.differences) - len(self.remarks)

    def __str__(self) -> str:
        """Return the file's path and its counts in one line."""
        return f"{self.path.name}: {tally([self])}"


def tally(results: Sequence[FileResult]) -> str:
    """Return a text such as `9 cases, 7 agree, 1 differ, 1 corrected`."""
    cases = sum(result.cases for result in results)
    agree = sum(result.agreements for result in results)
    differ = sum(len(result.differences) for result in results)
    verdicts = Counter(remark.verdict for result in results for _, remark in result.remarks)
    others = (f", {count} {verdict}" for verdict, count in sorted(verdicts.items()))
    return f"{cases} cases, {agree} agree, {differ} differ{''.join(others)}"


def compare_file(
    kind: str | CaseKind, path: Path, *, corrected: bool = False, only: str = "*"
) -> FileResult:
    """Replay the cases of the file `path` whose names match the shell pattern `only`.

    A case without a name is called `case N`, where N counts from 1. `kind` is a CaseKind, or
    the key of a CaseKind in KINDS. If `corrected` is set, the key is looked up in CORRECTED_KINDS
    instead. The entries of KINDS reproduce upstream's defects; those of CORRECTED_KINDS use
    Fairlead's defaults.

    Raises KeyError if the key `kind` is unknown. Raises OSError or CaseFileError if the file
    cannot be read or replayed.
    """
    replayed = (CORRECTED_KINDS if corrected else KINDS)[kind] if isinstance(kind, str) else kind
    result = FileResult(path)
    for number, line in enumerate(read_cases(path, replayed.fields), 1):
        name: object = replayed.name_of(line) or f"case {number}"
        if not isinstance(name, str):
            raise CaseFileError(f"{path}: case {number}: the name is not text")
        if not fnmatchcase(name, only):
            continue
        found = _judge(replayed, path, name, line)
        if line.get("setup") and found is None:
            continue  # A setup line is not a case, but its failure is reported.
        result.cases += 1
        match found:
            case Mismatch() as difference:
                result.differences.append((name, difference))
            case Remark() as remark:
                result.remarks.append((name, remark))
            case None:
                pass
    return result


def _judge(kind: CaseKind, path: Path, name: str, line: Json) -> Finding:
    try:
        if kind.recognizes(line):
            return kind.judge(line)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as cause:
        raise CaseFileError(f"{path}: {name}: {type(cause).__name__}: {cause}") from cause
    kinds = _kinds_of(line)
    problem = f"is of another kind: {' or '.join(kinds)}" if kinds else "is of no known kind"
    raise CaseFileError(f"{path}: {name}: {problem}")


def _kinds_of(line: Json) -> list[str]:
    """Return the names of the kinds of cases to which `line` can belong."""
    return [
        name
        for name, kind in KINDS.items()
        if all(isinstance(line.get(field), dict) for field in kind.fields) and kind.recognizes(line)
    ]


def run(  # noqa: PLR0913 - a command's options
    kind: str,
    files: Sequence[Path],
    say: Say | None = None,
    complain: Say | None = None,
    *,
    defects: str = "upstream",
    only: str = "*",
    shown: int = SHOWN_PER_FILE,
    judged_by: CaseKind | None = None,
) -> int:
    """Replay `files` and print the result; return 1 if a case differs, and 0 if no case differs.

    Returns 2 if the kind is unknown or if there is no case to replay. Also returns 2 if a file is
    missing or is not a case file of this kind. `only` is a shell pattern of case names. `shown` is
    the largest number of mismatches to print per file. `say` and `complain` print a line. By
    default, `say` prints it to standard output, and `complain` to standard error.

    The CaseKind `judged_by` replays the cases. If `judged_by` is None, an entry for `kind` replays
    the cases, and `defects` selects this entry. "upstream" selects the entry in KINDS, which
    reproduces upstream's defects. "fixed" selects the entry in CORRECTED_KINDS, which uses
    Fairlead's defaults. With "fixed", the cases that depend on a corrected defect are also printed.
    """
    say, complain = say or _to(sys.stdout), complain or _to(sys.stderr)
    if kind not in KINDS and judged_by is None:
        known = ", ".join(sorted(KINDS))
        complain(f"fairlead conformance: no kind {kind!r}; known: {known}")
        return 2
    if not files:
        complain("fairlead conformance: no files given")
        return 2
    corrected = defects == "fixed"
    if corrected and kind not in CORRECTED_KINDS:
        complain(f"fairlead conformance: --defects fixed: {kind} has no corrected defects")
        return 2
    results: list[FileResult] = []
    try:
        for path in files:
            replayed = judged_by or kind
            results.append(compare_file(replayed, path, corrected=corrected, only=only))
            _print_result(results[-1], say, shown)
    except CaseFileError as problem:
        complain(f"fairlead conformance: {problem}")
        return 2
    except OSError as problem:
        complain(f"fairlead conformance: {path}: cannot be read: {problem.strerror or problem}")
        return 2
    if not sum(result.cases for result in results):
        why = "no case to replay" if only == "*" else f"no case matches --only {only!r}"
        complain(f"fairlead conformance: {why}")
        return 2
    say(f"total: {tally(results)}")
    return 1 if any(result.differences for result in results) else 0


def _print_result(result: FileResult, say: Say, shown: int) -> None:
    say(str(result))
    for name, difference in result.differences[:shown]:
        say(f"  {name}: {difference}")
    hidden = len(result.differences) - shown
    if hidden > 0:
        say(f"  … and {hidden} more")
    for name, remark in result.remarks:
        say(f"  {name}: {remark}")
