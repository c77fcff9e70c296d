"""Questions: what-ifs and explanations about the present state of a local cluster.

Each runs in its own process on a snapshot of the cluster, so that the cluster goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import shlex
from collections import OrderedDict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.cli import exit_code
from fairlead.cli.own_command import run_own_command
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.live_resource import LIVE_RESOURCES
from fairlead.whatif.snapshot.snapshot import encode_snapshot
from fairlead.worlds.local.cluster import LocalCluster

REPORTS_MAX: Final = 10
# Options of `fairlead whatif` that describe a change, and neither read nor write files.
ALLOWED: Final = (
    "--drain", "--cordon", "--delete", "--scale", "--set-resources", "--add-nodes", "--like",
    "--fail-zone", "--fail-node", "--fail-fraction", "--flap", "--how", "--at", "--for",
    "--max-unavailable", "--seed", "--seeds", "--fail-on",
)  # fmt: skip
_ANSWERED: Final = (exit_code.SUCCESS, exit_code.DIFFERENCE, exit_code.CONDITION_HOLDS)


class _Change(msgspec.Struct, forbid_unknown_fields=True):
    change: str


class _Target(msgspec.Struct, forbid_unknown_fields=True):
    pod: str


class Questions:
    """Answers questions about `cluster`, one at a time; keeps the newest REPORTS_MAX reports."""

    def __init__(self, cluster: LocalCluster) -> None:
        """Answer questions about `cluster`."""
        self._cluster = cluster
        self._one_at_a_time = asyncio.Lock()
        self._reports: OrderedDict[str, bytes] = OrderedDict()
        self._asked = 0

    def report(self, number: str) -> bytes | None:
        """Return the HTML report of a what-if; None if there is none, or no longer."""
        return self._reports.get(number)

    async def ask(self, body: Any) -> Json:
        """Ask what a change would do: the findings, and the path of the report.

        Raises InputError, and ValidationError for a bad body.
        """
        words = change_words(msgspec.convert(body, _Change).change)
        async with self._one_at_a_time:
            with TemporaryDirectory(prefix="fairlead-") as folder:
                report = Path(folder) / "report.html"
                arguments = [*words, "-o", "json", "--report", str(report)]
                output = await self._run("whatif", Path(folder), arguments)
                self._asked += 1
                self._reports[str(self._asked)] = report.read_bytes()
        while len(self._reports) > REPORTS_MAX:
            self._reports.popitem(last=False)
        verdict = msgspec.json.decode(output)["verdict"]
        return {"findings": verdict["findings"], "report": f"/reports/{self._asked}"}

    async def explain(self, body: Any) -> Json:
        """Explain why a pod runs where it does, or why it is pending. Raises as `ask`."""
        pod = msgspec.convert(body, _Target).pod
        if pod.count("/") != 1 or pod.startswith("-"):
            raise InputError("pod", "must be NAMESPACE/NAME", object_name=pod)
        async with self._one_at_a_time:
            with TemporaryDirectory(prefix="fairlead-") as folder:
                output = await self._run("explain", Path(folder), [f"pod/{pod}"])
        return {"text": output.decode(errors="replace")}

    async def _run(self, command: str, folder: Path, arguments: list[str]) -> bytes:
        """Run `command` on a snapshot of the cluster and return its output. Raises InputError."""
        if any("\0" in one for one in arguments):
            raise InputError(command, "must not contain the character NUL")
        snapshot = folder / "cluster.json"
        snapshot.write_bytes(self._snapshot())
        try:
            completed = await run_own_command([command, str(snapshot), *arguments])
        except TimeoutError:
            raise InputError(command, "takes too long") from None
        if completed.code not in _ANSWERED:
            # The message names the temporary file, which means nothing to the reader.
            text = completed.error.removeprefix("fairlead: ").replace(str(snapshot), "the cluster")
            raise InputError(command, text)
        return completed.output

    def _snapshot(self) -> bytes:
        store = self._cluster.store
        objects = [obj for one in LIVE_RESOURCES for obj in store.list(one.kind)]
        return encode_snapshot(objects, self._cluster.clock.now())


def change_words(text: str) -> list[str]:
    """Split the options of a change. Raises InputError for options that are not in ALLOWED."""
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
