"""Reads the YAML file of questions for `fairlead watch --ask`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.cli.commands.whatif.options import RunOptions
from fairlead.cli.main import values_of
from fairlead.whatif.input.content import content_of
from fairlead.whatif.input.document import read_one
from fairlead.whatif.input.duration import read_duration
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.strict_form import StrictForm, decode_strictly
from fairlead.whatif.outcome.assessment.fail_on import parse_fail_on

EVERY_MIN_S: Final = 1.0
# Options that name another cluster, or that set the place or the format of the answer.
_NOT_ALLOWED: Final = ("--kubeconfig", "--context", "--in-cluster", "-o", "--output", "--report")
_SEVERAL_ANSWERS: Final = (
    "--change, --against-snapshot and --against-config compare several answers; write a question "
    "for each answer"
)
# Options whose values are paths of input files.
INPUT_FILES: Final = (
    "--apply",
    "--descheduler",
    "--instance-types",
    "--kwok-stages",
    "--load",
    "--node-groups",
    "--node-pools",
    "--runtimes",
)
# Options whose values are paths of input files, or names of objects or of built-in configurations.
NAMED_CONFIGURATIONS: Final = ("--batch-config", "--config", "--new-batch-config", "--new-config")
_INFORMATION: Final = ("--help", "-h", "--version")
_SNAPSHOT: Final = "snapshot.json"  # a placeholder for the snapshot; no such file is read


class _Question(StrictForm, frozen=True):
    name: str
    ask: str


class _Questions(StrictForm, frozen=True):
    questions: list[_Question]
    every: str | float = "1m"


@dataclass(frozen=True, slots=True)
class Question:
    """A question; `words` are the options of `fairlead whatif` for the question, with values."""

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """All questions of a file, and the interval in seconds between two reads of the cluster."""

    questions: tuple[Question, ...]
    every_s: float


def read_questions(path: str) -> QuestionFile:
    """Read the questions in the file `path`. Raises InputError."""
    form = decode_strictly(read_one(path), _Questions)
    if not form.questions:
        raise InputError(path, "has no question", field="questions")
    try:
        every_s = read_duration(form.every) / NANOSECONDS_PER_SECOND
    except ValueError as cause:
        raise InputError(path, str(cause), field="every") from None
    if every_s < EVERY_MIN_S:
        raise InputError(path, f"must be at least {EVERY_MIN_S:g}s", field="every")
    questions: dict[str, Question] = {}
    for number, one in enumerate(form.questions):
        field = f"questions[{number}]"
        if not one.name or one.name in questions:
            problem = "is used twice" if one.name else "must not be empty"
            raise InputError(path, problem, field=f"{field}.name")
        question = Question(one.name, _words(path, f"{field}.ask", one.ask))
        _refuse_unknown_options(path, f"{field}.ask", question)
        _refuse_unreadable_files(path, f"{field}.ask", question)
        questions[one.name] = question
    return QuestionFile(tuple(questions.values()), every_s)


def _refuse_unknown_options(path: str, field: str, question: Question) -> None:
    """Raise InputError for options that `fairlead whatif` would refuse for every cluster.

    Options that request several answers are refused, too. Names of objects are not checked, because
    the objects may exist later.
    """
    what = f"question {question.name}"
    try:
        values = values_of(["whatif", _SNAPSHOT, *question.words])
        running = values.get("running")
        if isinstance(running, RunOptions):
            for condition in running.fail_on:
                parse_fail_on(condition)
    except ValueError as cause:  # InputError is a ValueError
        raise InputError(path, str(cause), object_name=what, field=field) from None
    if "comparison" in values:
        raise InputError(path, _SEVERAL_ANSWERS, object_name=what, field=field)


def _refuse_unreadable_files(path: str, field: str, question: Question) -> None:
    """Raise InputError if an input file of `question` cannot be read.

    Without this check, the error would be reported only after the first read of the cluster.
    """
    what = f"question {question.name}"
    for option, value in _values(question.words):
        if option in INPUT_FILES and value == "-":
            problem = f"{option}: cannot be standard input, which is read only once"
            raise InputError(path, problem, object_name=what, field=field)
        # TYPES,PRICES names two files.
        names = value.split(",") if option == "--instance-types" else [value]
        for name in names if option in INPUT_FILES else ():
            try:
                content_of(Path(name), is_copied=True)
            except InputError as cause:
                problem = f"{option}: {cause}"
                raise InputError(path, problem, object_name=what, field=field) from None


def _values(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (word, next word) for each of `words`, or (OPTION, VALUE) for the word OPTION=VALUE.

    The caller uses only the pairs that begin with the name of an option that takes a value.
    """
    for word, after in zip(words, (*words[1:], ""), strict=True):
        option, is_joined, value = word.partition("=")
        yield option, value if is_joined else after


def _words(path: str, field: str, text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as cause:
        raise InputError(path, f"cannot be split into words: {cause}", field=field) from None
    if not words:
        raise InputError(path, "must not be empty", field=field)
    for word in words:
        name = word.partition("=")[0]
        if not word.startswith("-") and word == words[0]:
            raise InputError(path, "must begin with an option of fairlead whatif", field=field)
        if name.startswith("-o"):  # also -ojson, a value without a space
            name = "-o"
        if name in (*_NOT_ALLOWED, *_INFORMATION):
            raise InputError(path, f"{name} cannot be part of a question", field=field)
    return words
