"""BareWorld: applies commands directly to pods in memory, to measure only the engine.

There is no store, no JSON and no kubelet. Every command succeeds or fails immediately.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from fairlead.api.objects import Pod
from fairlead.engine.core.command import (
    Bind,
    DeleteObject,
    IssuedCommand,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.worlds.driver import CommandSource, Driver

# The instant at which the whole benchmark happens; its value does not matter.
NOW: Instant = seconds(1_800_000_000)


class BareWorld:
    """Runs `engine` at one instant; `bound` is the number of successful bindings."""

    def __init__(self, engine: CommandSource) -> None:
        self._driver = Driver(engine, self, now=NOW)
        self._pods: dict[str, Pod] = {}
        self._enqueued: deque[Stimulus] = deque()
        self._pending: list[Stimulus] = []
        self.bound = 0

    def enqueue(self, stimuli: Iterable[Stimulus]) -> None:
        """Queue `stimuli` for the next `run`, which delivers them before its first cycle.

        The changes and outcomes that a stimulus causes are delivered before the next stimulus.
        """
        self._enqueued.extend(stimuli)

    def run(self, cycles_max: int | None = None) -> int:
        """Run until the engine has no work left; return the number of cycles.

        At most `cycles_max` cycles run; None means no maximum.
        """
        instants: list[Instant] = []  # one entry before the first cycle, and one after each cycle
        stop_when = None if cycles_max is None else lambda: len(instants) > cycles_max
        self._driver.run(NOW, on_progress=instants.append, stop_when=stop_when)
        return len(instants) - 1

    # --- World -----------------------------------------------------------------------------

    def perform(self, issued: IssuedCommand, now: Instant) -> Stimulus | None:
        """Change the pods according to the command, and return None.

        `poll` returns the changes and the outcome. Raises NotImplementedError for commands that
        schedulers do not issue.
        """
        del now
        command = issued.command
        if type(command) is RecordEvent:
            return None
        if type(command) is Bind:
            key = command.pod.key
            pod = self._pods.get(key)
            if pod is not None:
                self.bound += 1
                self._put(key, _bound(pod, command.node))
        elif type(command) is PatchStatus:
            key = command.target.key
            pod = self._pods.get(key)
            if pod is not None:
                self._put(key, _patched(pod, command))
        elif type(command) is DeleteObject:
            pod = self._pods.pop(command.target.key, None)
            if pod is not None:
                self._pending.append(ObjectDeleted(pod))
        else:
            raise NotImplementedError(type(command).__name__)
        if pod is None:
            self._pending.append(CommandFailed(command, FailureReason.NOT_FOUND, "not found"))
        else:
            self._pending.append(CommandSucceeded(command))
        return None

    def poll(self, now: Instant) -> list[Stimulus]:
        """Return the changes and outcomes that commands have caused since the last `poll`.

        If there are none, return the next enqueued stimulus. If no stimulus is left, return [].
        """
        del now
        if not self._pending and self._enqueued:
            stimulus = self._enqueued.popleft()
            self._observe(stimulus)
            return [stimulus]
        pending, self._pending = self._pending, []
        return pending

    def next_event(self) -> Instant | None:
        """Return None, because only the engine causes events in this world."""
        return None

    def _observe(self, stimulus: Stimulus) -> None:
        match stimulus:
            case ObjectChanged(Pod() as pod):
                self._pods[pod.key] = pod
            case ObjectDeleted(Pod() as pod):
                self._pods.pop(pod.key, None)
            case ObjectsLoaded(objects):
                self._pods |= {one.key: one for one in objects if isinstance(one, Pod)}
            case _:
                pass

    def _put(self, key: str, pod: Pod) -> None:
        self._pods[key] = pod
        self._pending.append(ObjectChanged(pod))


def _bound(pod: Pod, node: str) -> Pod:
    replace = msgspec.structs.replace
    status = replace(pod.status, phase="Running", nominated_node_name="")
    return replace(pod, spec=replace(pod.spec, node_name=node), status=status)


def _patched(pod: Pod, command: PatchStatus) -> Pod:
    replace = msgspec.structs.replace
    status = pod.status
    if "nominatedNodeName" in command.fields:
        status = replace(status, nominated_node_name=command.fields["nominatedNodeName"] or "")
    return replace(pod, status=status)
