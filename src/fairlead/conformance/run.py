"""`fairlead conformance KIND FILES…`: replays case files and says where we differ."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, TextIO

from fairlead.api.json import Json
from fairlead.conformance.case_kind import CORRECTED_KINDS, KINDS, Finding, Kind
from fairlead.conformance.comparison import CaseFileError, Difference, Remark, read_cases

Say = Callable[[str], None]
SHOWN_PER_FILE: Final = 20


def _to(stream: TextIO) -> Say:
    def say(line: str) -> None:
        stream.write(f"{line}\n")
        stream.flush()

    return say


@dataclass(slots=True)
class FileResult:
    """What came of one file: how many cases, and differences and remarks by case name."""

    path: Path
    cases: int = 0
    differences: list[tuple[str, Difference]] = field(default_factory=list)
    remarks: list[tuple[str, Remark]] = field(default_factory=list)

    @property
    def agreements(self) -> int:
        """How many cases agree."""
        return self.cases - len(self.differences) - len(self.remarks)

    def __str__(self) -> str:
        """One line."""
        return f"{self.path.name}: {tally([self])}"


def tally(results: Sequence[FileResult]) -> str:
    """`9 cases, 7 agree, 1 differ, 1 corrected`; the last only if there are any."""
    cases = sum(result.cases for result in results)
    agree = sum(result.agreements for result in results)
    differ = sum(len(result.differences) for result in results)
    verdicts = Counter(remark.verdict for result in results for _, remark in result.remarks)
    others = (f", {count} {verdict}" for verdict, count in sorted(verdicts.items()))
    return f"{cases} cases, {agree} agree, {differ} differ{''.join(others)}"


def compare_file(
    kind: str | Kind, path: Path, *, corrected: bool = False, only: str = "*"
) -> FileResult:
    """Replay every case of `path` whose name matches `only`, with our corrections if `corrected`.

    Raises CaseFileError and OSError as `read_cases` does, and CaseFileError for cases of another
    kind.
    """
    replayed = (CORRECTED_KINDS if corrected else KINDS)[kind] if isinstance(kind, str) else kind
    result = FileResult(path)
    for number, line in enumerate(read_cases(path, replayed.fields), 1):
        name = replayed.name_of(line) or f"case {number}"
        if not fnmatchcase(name, only):
            continue
        result.cases += not line.get("setup")  # what only prepares is no case
        match _judge(replayed, path, name, line):
            case Difference() as difference:
                result.differences.append((name, difference))
            case Remark() as remark:
                result.remarks.append((name, remark))
            case None:
                pass
    return result


def _judge(kind: Kind, path: Path, name: str, line: Json) -> Finding:
    try:
        if kind.recognizes(line):
            return kind.judge(line)
    except (ValueError, KeyError, TypeError, AttributeError) as cause:
        raise CaseFileError(f"{path}: {name}: {type(cause).__name__}: {cause}") from cause
    raise CaseFileError(f"{path}: {name}: is of another kind: {_kind_of(line)}")


def _kind_of(line: Json) -> str:
    """The kinds that recognize `line`, which another did not."""
    known = [
        name
        for name, kind in KINDS.items()
        if all(field in line for field in kind.fields) and kind.recognizes(line)
    ]
    return " or ".join(known) or "nothing known"


def run(  # noqa: PLR0913 - a command's options
    kind: str,
    files: Sequence[Path],
    say: Say | None = None,
    complain: Say | None = None,
    *,
    defects: str = "upstream",
    only: str = "*",
    shown: int = SHOWN_PER_FILE,
    judged_by: Kind | None = None,
) -> int:
    """Compare and tell; 0 where everything agrees, 1 on any difference, 2 on bad input.

    With `defects` "fixed" our defaults are compared, and cases that depend on what they correct
    are listed. `only` is a pattern of case names, `shown` how many differences of a file are
    told, `judged_by` replaces what is known under the name `kind`. Lines go to standard output
    and standard error unless told otherwise.
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
        complain(f"fairlead conformance: --defects fixed: nothing is corrected in {kind}")
        return 2
    results: list[FileResult] = []
    try:
        for path in files:
            replayed = judged_by or kind
            results.append(compare_file(replayed, path, corrected=corrected, only=only))
            _tell(results[-1], say, shown)
    except CaseFileError as problem:
        complain(f"fairlead conformance: {problem}")
        return 2
    except OSError as problem:
        complain(f"fairlead conformance: {path}: cannot be read: {problem.strerror or problem}")
        return 2
    if not sum(result.cases for result in results):
        complain(f"fairlead conformance: no case to replay{'' if only == '*' else f': {only}'}")
        return 2
    say(f"total: {tally(results)}")
    return 1 if any(result.differences for result in results) else 0


def _tell(result: FileResult, say: Say, shown: int) -> None:
    say(str(result))
    for name, difference in result.differences[:shown]:
        say(f"  {name}: {difference}")
    hidden = len(result.differences) - shown
    if hidden > 0:
        say(f"  … and {hidden} more")
    for name, remark in result.remarks:
        say(f"  {name}: {remark}")
