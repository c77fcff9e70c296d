"""BareWorld: performs commands directly on typed views, to measure the engine alone.

There is no store, no JSON and no kubelet. Every command succeeds or fails at once, and every change
is delivered as a stimulus, as by an informer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from fairlead.api.objects import Pod
from fairlead.engine.core.command import (
    Bind,
    Command,
    DeleteObject,
    Issued,
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
    Stimulus,
)
from fairlead.engine.engine import Engine

# The instant at which the whole benchmark happens; its value does not matter.
NOW: Instant = seconds(1_800_000_000)


class BareWorld:
    """Drives `engine`; `bound` counts successful bindings."""

    def __init__(self, engine: Engine) -> None:
        """Start with an engine without objects."""
        self._engine = engine
        self._pods: dict[str, Pod] = {}
        self._stimuli: deque[Stimulus] = deque()
        self.bound = 0

    def tell(self, stimuli: Iterable[Stimulus]) -> None:
        """Deliver `stimuli` in order, and perform all commands that follow from each."""
        for stimulus in stimuli:
            if isinstance(stimulus, ObjectChanged) and isinstance(stimulus.object, Pod):
                self._pods[stimulus.object.key] = stimulus.object
            elif isinstance(stimulus, ObjectDeleted) and isinstance(stimulus.object, Pod):
                self._pods.pop(stimulus.object.key, None)
            self._stimuli.append(stimulus)
            self._settle()

    def run(self, cycles_max: int | None = None) -> int:
        """Run at most `cycles_max` cycles, until nothing is due; return how many ran."""
        cycles = 0
        while cycles_max is None or cycles < cycles_max:
            due = self._engine.next_deadline()
            if due is None or due > NOW:
                break
            self._perform_all(self._engine.handle_deadline(NOW))
            self._settle()
            cycles += 1
        return cycles

    def _settle(self) -> None:
        while self._stimuli:
            self._perform_all(self._engine.handle(self._stimuli.popleft(), NOW))

    def _perform_all(self, issued: Iterable[Issued]) -> None:
        for one in issued:
            self._perform(one.command)

    def _perform(self, command: Command) -> None:
        match command:
            case RecordEvent():
                return
            case Bind(pod=target):
                pod = self._pods.get(target.key)
                if pod is not None:
                    self.bound += 1
                    self._put(_bound(pod, command.node))
            case PatchStatus(target=target):
                pod = self._pods.get(target.key)
                if pod is not None:
                    self._put(_patched(pod, command))
            case DeleteObject(target=target):
                pod = self._pods.pop(target.key, None)
                if pod is not None:
                    self._stimuli.append(ObjectDeleted(pod))
            case _:
                raise NotImplementedError(type(command).__name__)
        known = pod is not None
        gone = CommandFailed(command, FailureReason.NOT_FOUND, "not found")
        self._stimuli.append(CommandSucceeded(command) if known else gone)

    def _put(self, pod: Pod) -> None:
        self._pods[pod.key] = pod
        self._stimuli.append(ObjectChanged(pod))


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
