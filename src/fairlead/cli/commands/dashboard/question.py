"""Questions: answers what-ifs and explains pods, for the current state of a cluster.

A separate process answers each question, so that the process of the dashboard is not blocked.
"""

from __future__ import annotations

import asyncio
import shlex
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.cli import exit_code
from fairlead.cli.own_command import ANSWER_SECONDS_MAX, run_own_command
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.snapshot import PLACEHOLDER

REPORTS_MAX: Final = 10
SNAPSHOT: Final = "cluster.json"
# The options of `fairlead whatif` that the dashboard accepts. They do not read or write files.
ALLOWED: Final = (
    "--drain", "--cordon", "--delete", "--scale", "--set-resources", "--add-nodes", "--like",
    "--fail-zone", "--fail-node", "--fail-fraction", "--flap", "--how", "--at", "--for",
    "--max-unavailable", "--seed", "--seeds", "--fail-on",
)  # fmt: skip
# A function that returns the arguments that name the cluster. It may write the cluster's objects to
# files in the folder that is its argument.
ClusterArguments = Callable[[Path], Sequence[str]]
_COMPLETED_CODES: Final = (exit_code.SUCCESS, exit_code.DIFFERENCE, exit_code.CONDITION_HOLDS)


class _Change(msgspec.Struct, forbid_unknown_fields=True):
    change: str


class _Target(msgspec.Struct, forbid_unknown_fields=True):
    pod: str


class Questions:
    """Answers questions about a cluster, one at a time.

    The HTML reports of the last REPORTS_MAX what-ifs are kept.
    """

    def __init__(
        self,
        cluster_arguments: ClusterArguments,
        whatif_options: Sequence[str] = (),
        source: Sequence[str] = (PLACEHOLDER,),
    ) -> None:
        """`whatif_options` are added to each what-if.

        `cluster_arguments` is called for each question. It returns the arguments with which
        `fairlead whatif` and `fairlead explain` read the cluster. If these arguments name the
        temporary file `cluster.json`, printed commands contain the words in `source` instead of the
        name of the file.
        """
        self._cluster_arguments = cluster_arguments
        self._whatif_options = whatif_options
        self._source = shlex.join(source)
        self._one_at_a_time = asyncio.Lock()
        self._reports: OrderedDict[str, bytes] = OrderedDict()
        self._report_count = 0

    def report(self, number: str) -> bytes | None:
        """Return the HTML report of what-if `number`; None if no such report is kept."""
        return self._reports.get(number)

    async def ask(self, body: Any) -> Json:
        """Run a what-if about a change; return its findings and the path of its report.

        Raises InputError, and ValidationError for a bad body.
        """
        words = change_words(msgspec.convert(body, _Change).change)
        async with self._one_at_a_time:
            with TemporaryDirectory(prefix="fairlead-") as folder:
                report = Path(folder) / "report.html"
                arguments = [*self._whatif_options, *words, "-o", "json", "--report", str(report)]
                output = await self._run("whatif", Path(folder), arguments)
                self._report_count += 1
                self._reports[str(self._report_count)] = report.read_bytes()
        while len(self._reports) > REPORTS_MAX:
            self._reports.popitem(last=False)
        verdict = msgspec.json.decode(output)["verdict"]
        return {"findings": verdict["findings"], "report": f"/reports/{self._report_count}"}

    async def explain(self, body: Any) -> Json:
        """Explain why a pod runs on its node, or why it is pending.

        Raises InputError, ValidationError.
        """
        pod = msgspec.convert(body, _Target).pod
        if pod.count("/") != 1 or pod.startswith("-"):
            raise InputError("pod", "must be NAMESPACE/NAME", object_name=pod)
        async with self._one_at_a_time:
            with TemporaryDirectory(prefix="fairlead-") as folder:
                output = await self._run("explain", Path(folder), [f"pod/{pod}"])
        # The commands in the text name a temporary file, which no longer exists.
        text = output.decode(errors="replace").replace(str(Path(folder) / SNAPSHOT), self._source)
        return {"text": text}

    async def _run(self, command: str, folder: Path, arguments: list[str]) -> bytes:
        """Run `command` on the cluster and return its standard output. Raises InputError."""
        if any("\0" in one for one in arguments):
            raise InputError(command, "must not contain the character NUL")
        cluster = self._cluster_arguments(folder)
        try:
            completed = await run_own_command([command, *cluster, *arguments])
        except TimeoutError:
            problem = f"took longer than {ANSWER_SECONDS_MAX} seconds"
            raise InputError(command, problem) from None
        if completed.code not in _COMPLETED_CODES:
            # The message contains the path of a temporary file, which means nothing to the user.
            text = completed.error.removeprefix("fairlead: ")
            text = text.replace(str(folder / SNAPSHOT), "the cluster")
            raise InputError(command, text)
        return completed.output


def change_words(text: str) -> list[str]:
    """Split `text` into the options of a change. Raises InputError for an option not in ALLOWED."""
    try:
        words = shlex.split(text)
    except ValueError as cause:
        raise InputError("change", f"cannot be split into words: {cause}") from None
    if not words or not words[0].startswith("--"):
        raise InputError("change", "must begin with an option, such as --drain node-1")
    for word in words:
        if word.startswith("-") and word.partition("=")[0] not in ALLOWED:
            problem = f"must be one of {', '.join(ALLOWED)}"
            raise InputError("change", problem, object_name=word)
    return words
