"""Inquiry: reads a cluster at intervals, and answers each question again if the cluster changed.

Each question runs in its own `fairlead whatif` process. So a question that fails or takes long does
not stop the server.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.kind import CONFIG_MAP, LEASE
from fairlead.cli import exit_code
from fairlead.cli.commands.watch.question_file import Question, QuestionFile
from fairlead.cli.own_command import ANSWER_SECONDS_MAX, run_own_command
from fairlead.client.daemon_thread import in_daemon_thread
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.live.live_resource import unreadable_lines
from fairlead.whatif.snapshot.live.live_snapshot import LiveObjects

# These fields change with every heartbeat of a node.
_HEARTBEAT: Final = re.compile(rb'"(lastHeartbeatTime|resourceVersion)":"[^"]*"')
# Cluster Autoscaler writes the time of each loop to its status, even if nothing else has changed.
_TIME: Final = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+")
_COMPLETED_CODES: Final = (exit_code.SUCCESS, exit_code.DIFFERENCE, exit_code.CONDITION_HOLDS)

ReadCluster = Callable[[], LiveObjects]


@dataclass(frozen=True, slots=True)
class Answer:
    """The newest answer to a question.

    `result` is the JSON of `fairlead whatif`. If the command gave no answer, `result` is None, and
    `error` states why. `read_at` is the time at which the cluster was read, as text.
    """

    question: Question
    read_at: str
    result: dict[str, Any] | None = None
    error: str = ""

    @property
    def findings(self) -> list[dict[str, Any]]:
        """The findings of the verdict, the most important first; [] if there is no result."""
        return [] if self.result is None else self.result["verdict"]["findings"]

    @property
    def conditions(self) -> list[dict[str, Any]]:
        """Each condition of `--fail-on`, whether it holds, and why; [] if there is no result."""
        return [] if self.result is None else self.result["fail_on"]


class Inquiry:
    """Answers questions about one cluster; a file contains the questions.

    `answers` has the newest answer to each question, by the question's name. `problem` is the error
    of the last read of the cluster, "" if the read succeeded. `read_at` is the time of the last
    successful read, as text. `objects` is the number of objects that this read returned. Before the
    first successful read, `read_at` is "" and `objects` is 0.
    """

    def __init__(
        self,
        file: QuestionFile,
        cluster: str,
        read: ReadCluster,
        folder: Path,
        arguments: Sequence[str] = (),
    ) -> None:
        """`file` has the questions; `cluster` is the name of the cluster in messages and answers.

        Commands in answers contain `arguments`, which name the cluster, such as `--context prod`.

        `read` reads the cluster; it is called in a thread, and may raise InputError or OSError. The
        objects that `read` returns are written to a snapshot file in `folder`.
        """
        self.cluster = cluster
        self.answers: dict[str, Answer] = {}
        self.problem = ""
        self.unreadable: list[str] = []  # what could not be read, and how that affects answers
        self.read_at = ""
        self.objects = 0
        self.reads = 0
        self.failed_reads = 0
        self._file = file
        self._read = read
        self._snapshot = folder / "snapshot.json"
        self._arguments = shlex.join(arguments)
        self._digest = b""

    def as_json(self) -> dict[str, Any]:
        """Return the answers as JSON."""
        answers = [
            {
                "question": one.question.name,
                "ask": shlex.join(one.question.words),
                "askedAt": one.read_at,
                "error": one.error,
                "verdict": None if one.result is None else one.result["verdict"],
                "failOn": one.conditions,
            }
            for one in self.answers.values()
        ]
        return {
            "cluster": self.cluster,
            "readAt": self.read_at,
            "objects": self.objects,
            "problem": self.problem,
            "unreadable": self.unreadable,
            "answers": answers,
        }

    async def run(self) -> None:
        """Read the cluster at intervals until cancelled; after a change, answer all questions."""
        while True:
            await self.look()
            await asyncio.sleep(self._file.every_s)

    async def look(self) -> None:
        """Read the cluster once; if it has changed, answer all questions."""
        try:
            live = await in_daemon_thread(self._read)
            digest = await in_daemon_thread(partial(self._write_if_changed, live))
        except (InputError, OSError) as cause:
            self._report_problem(" ".join(str(cause).split()))
            self.failed_reads += 1
            return
        self._report_problem("")
        self.reads += 1
        self.read_at, self.objects = format_timestamp(live.taken_at), len(live)
        self._report_unreadable(unreadable_lines(live.unreadable_resources()))
        if digest == self._digest:
            return
        for question in self._file.questions:
            answer = await self._ask(question)
            before = self.answers.get(question.name)
            if answer.error and (before is None or before.error != answer.error):
                print(f"fairlead: question {question.name}: {answer.error}", file=sys.stderr)
            self.answers[question.name] = answer
        self._digest = digest

    def _report_problem(self, problem: str) -> None:
        """Print a line on stderr if reading the cluster begins to fail, or works again.

        `problem` is the error of the last read, "" if the read succeeded.
        """
        if problem and not self.problem:
            print(f"fairlead: {problem}; the answers stay as they were", file=sys.stderr)
        elif self.problem and not problem:
            print(f"fairlead: {self.cluster} can be read again", file=sys.stderr)
        self.problem = problem

    def _report_unreadable(self, lines: list[str]) -> None:
        """Print each of `lines` on stderr, unless the previous call already had this line.

        Each line names a resource that cannot be read. If the previous call had lines and this call
        has none, print that every resource can be read.
        """
        for line in lines:
            if line not in self.unreadable:
                print(f"fairlead: {line}", file=sys.stderr)
        if self.unreadable and not lines:
            print(f"fairlead: every resource of {self.cluster} can be read", file=sys.stderr)
        self.unreadable = lines

    def _write_if_changed(self, live: LiveObjects) -> bytes:
        """Write the snapshot file if `live` has changed; return the digest of `live`."""
        digest = _digest(live)
        if digest != self._digest:
            self._snapshot.write_bytes(live.encoded())
        return digest

    async def _ask(self, question: Question) -> Answer:
        """Answer `question` about the snapshot, and return the answer."""
        arguments = ["whatif", str(self._snapshot), *question.words, "-o", "json"]
        try:
            completed = await run_own_command(arguments)
        except TimeoutError:
            error = f"took longer than {ANSWER_SECONDS_MAX} seconds"
            return Answer(question, self.read_at, error=error)
        if completed.code not in _COMPLETED_CODES:
            # The message contains the path of a temporary file, which means nothing to the user.
            error = completed.error.removeprefix("fairlead: ")
            error = error.replace(str(self._snapshot), self.cluster)
            return Answer(question, self.read_at, error=error)
        try:
            result = msgspec.json.decode(self._with_arguments(completed.output))
            return Answer(question, self.read_at, result)
        except msgspec.DecodeError:
            return Answer(question, self.read_at, error="fairlead whatif printed no answer")

    def _with_arguments(self, output: bytes) -> bytes:
        """Return the JSON text `output`, with commands that a user can run.

        The commands in `output` read a temporary snapshot file. In the result, these commands read
        the cluster instead.
        """
        path = shlex.quote(str(self._snapshot))
        path_json, arguments_json = (
            msgspec.json.encode(one)[1:-1] for one in (path, self._arguments)
        )
        return output.replace(path_json, arguments_json)


def _digest(live: LiveObjects) -> bytes:
    """Return a digest of the objects, without the fields that change all the time.

    The digest includes the names of the resources that could not be read, because answers mention
    them.
    """
    digest = hashlib.sha256(" ".join(live.unreadable_resources()).encode())
    for kind, items in live.objects:
        if kind is not LEASE:
            for item in items:
                essential = _HEARTBEAT.sub(b"", bytes(item))
                digest.update(_TIME.sub(b"", essential) if kind is CONFIG_MAP else essential)
    return digest.digest()
