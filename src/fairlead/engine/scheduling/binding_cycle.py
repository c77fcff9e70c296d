"""BindingCycles: binds placed pods, or reverts their placement.

    reserve ──▶ permit ──▶ (waiting) ──▶ pre-bind ──▶ (preparing) ──▶ Bind sent ──▶ bound
       │           │           │             │             │              │     post-bind
       └───────────┴───────────┴── refused ──┴─────────────┴──────────────┘  unreserve, forget

The pod is assumed on its node first, so that the next scheduling cycle counts the pod there. If an
extender binds the pod, a `CallExtender` is sent instead of the Bind. If the pod must wait for
Permit or PreBind, status.nominatedNodeName is set before the wait (feature
NominatedNodeNameForExpectation).

upstream: pkg/scheduler/schedule_one.go: assumeAndReserve, prepareForBindingCycle, bindingCycle
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.extender import BindingResult
from fairlead.engine.core.command import Bind, CallExtender, Command, PatchStatus, RecordEvent
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.reporter import Reporter
from fairlead.engine.core.status import Status, error
from fairlead.engine.core.stimulus import CallOutcome, CommandFailed, CommandSucceeded
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import (
    Preparation,
    PreparationCommand,
    Preparer,
    Releaser,
)
from fairlead.engine.framework.points import crashed
from fairlead.engine.framework.pre_bind import (
    PodPreparation,
    PreparationResult,
    PreparingPods,
    pre_bind_refusal,
)
from fairlead.engine.framework.runtime import Framework, attempt
from fairlead.engine.framework.waiting_pods import Wait, WaitingPod, WaitingPods
from fairlead.engine.scheduling.extender.answer import ExtenderError, read_answer
from fairlead.engine.scheduling.extender.extender import (
    SILENT,
    Extender,
    ExtenderCalls,
    interested_extenders,
)
from fairlead.engine.scheduling.queue.queued_pod import QueuedPod
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo

# upstream: framework/runtime/framework.go: maxTimeout
PERMIT_TIMEOUT_MAX: Final = seconds(15 * 60)
NOT_PREPARING: Final = error("a plugin that returns a Preparation must have is_prepared")


class PodBinding(Struct, frozen=True):
    """A placed pod that is not bound yet."""

    queued: QueuedPod
    pod: PodInfo
    node: str
    state: CycleState
    framework: Framework
    started: Instant
    attempt: int


class BindingRefused(Struct, frozen=True):
    """A failed binding; its effects on the scheduler's internal state are already reverted.

    `in_cycle` is True if a Reserve plugin refused the pod, or a Permit plugin refused it before any
    wait. In upstream, both refusals are part of the scheduling cycle. `commands` revert the writes
    of PreBind for the pod; the caller must still send these commands.
    """

    binding: PodBinding
    status: Status
    in_cycle: bool = False
    commands: tuple[PreparationCommand, ...] = ()


class BindingCycles:
    """The bindings of all placed pods that are not confirmed as bound yet."""

    def __init__(
        self,
        cluster: Cluster,
        waiting: WaitingPods,
        extenders: Sequence[Extender] = (),
        reporter: Reporter = SILENT,
    ) -> None:
        """Start without bindings; one of `extenders` may bind a pod in place of Bind plugins.

        Failed calls to `ignorable` extenders are reported to `reporter`.
        """
        self._cluster = cluster
        self._reporter = reporter
        self._extenders = extenders
        self._extender_calls: dict[
            str, CallExtender
        ] = {}  # by ID of the pod that an extender binds
        self._waiting = waiting
        self._preparing = PreparingPods()
        self._canceled: dict[str, Status] = {}  # by ID of the pod whose preparation was canceled
        self._by_pod: dict[str, PodBinding] = {}

    def is_binding(self, pod: PodInfo) -> bool:
        """Return whether `pod` is placed and not yet bound."""
        return pod.id in self._by_pod

    def node_of(self, key: str) -> str:
        """Return the node to which the pod with `key` is being bound, or "".

        `key` is the pod's `namespace/name`.
        """
        found = (one.node for one in self._by_pod.values() if one.pod.key == key)
        return next(found, "")

    def begin(
        self, binding: PodBinding, now: Instant, *, only_bind: bool = False
    ) -> list[Command] | BindingRefused:
        """Assume the pod on its node, and run Reserve, Permit, PreBind and Bind.

        Returns the commands to send, or a refusal. If Permit makes the pod wait, or if PreBind
        returns commands, `resume` continues the binding later. If `only_bind` is set, only Bind
        runs. Set `only_bind` only if Reserve, Permit and PreBind would do nothing for the pod.
        """
        self._by_pod[binding.pod.id] = binding
        self._cluster.assume(binding.pod, binding.node)
        if only_bind:
            return self._bind(binding)
        refusal = run_reserve(binding)
        waits = run_permit(binding) if refusal is None else refusal
        if isinstance(waits, Status):
            return replace(self._undo(binding, waits), in_cycle=True)
        if waits:
            self._waiting.add(WaitingPod(binding.pod, binding.node, now, waits))
            return _expect(binding)
        return self._pre_bind(binding, now)

    def _pre_bind(
        self, binding: PodBinding, now: Instant, *, is_expected: bool = False
    ) -> list[Command] | BindingRefused:
        """Run PreBind; if no PreBind plugin returns commands, run Bind too.

        Returns the commands of the PreBind plugins or, if there are none, the result of Bind. If a
        PreBind plugin refuses the pod, returns a BindingRefused.

        `is_expected` is True if the pod's status.nominatedNodeName already names the chosen node.
        """
        state, pod, node = binding.state, binding.pod, binding.node
        works: list[PodPreparation] = []
        for plugin in binding.framework.pre_bind:
            answer: Status | Preparation | None
            try:
                answer = plugin.pre_bind(state, pod, node)
            except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
                answer = crashed(plugin, cause)
            if answer is None:
                continue
            if isinstance(answer, Preparation):
                if not isinstance(plugin, Preparer):
                    return self._undo(binding, pre_bind_refusal(plugin.name, NOT_PREPARING))
                works.append(PodPreparation(pod, node, state, plugin, answer))
            elif not answer.is_success:
                return self._undo(binding, pre_bind_refusal(plugin.name, answer))
        if works:
            expectation = [] if is_expected else _expect(binding)
            return [*expectation, *self._preparing.begin(works, now)]
        return self._bind(binding)

    def _bind(self, binding: PodBinding) -> list[Command] | BindingRefused:
        """Call the extender that binds the pod; if there is none, run the Bind plugins."""
        for calls in interested_extenders(self._extenders, binding.pod) if self._extenders else ():
            if calls.extender.bind_verb:
                call = calls.bind(binding.node)
                self._extender_calls[binding.pod.id] = call
                return [call]
        return self._bind_by_plugin(binding)

    def _bind_by_plugin(self, binding: PodBinding) -> list[Command] | BindingRefused:
        """Return the command of the first Bind plugin that does not skip the pod, or a refusal."""
        for plugin in binding.framework.bind:
            answer: Bind | Status | None
            try:
                answer = plugin.bind(binding.pod, binding.node)
            except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
                answer = crashed(plugin, cause)
            if type(answer) is Bind:
                return [answer]
            if isinstance(answer, Status):
                # upstream: framework.go: runBindPlugin
                problem = f'running Bind plugin "{plugin.name}": {answer.message}'
                return self._undo(binding, error(problem))
        return self._undo(binding, error("no Bind plugin bound the pod"))

    @property
    def has_waits(self) -> bool:
        """Whether a pod waits for Permit or PreBind, or a canceled PreBind must still be undone."""
        return bool(self._waiting.pods or self._preparing.works or self._canceled)

    def next_deadline(self) -> Instant | None:
        """Return the next time at which a Permit wait ends or PreBind must be checked.

        Returns 0 if `resume` can already continue or refuse a binding. Returns None if no wait or
        check is scheduled.
        """
        if self._canceled:
            return 0
        waiting = self._waiting.next_deadline() if self._waiting else None
        check = self._preparing.next_check() if self._preparing.works else None
        if waiting is None or check is None:
            return check if waiting is None else waiting
        return min(waiting, check)

    def handle_outcome(
        self, outcome: CommandSucceeded | CommandFailed, now: Instant
    ) -> list[Command] | BindingRefused | None:
        """Handle the outcome of a command; return the refused binding if a PreBind command failed.

        Returns None if the command succeeded or is not a PreBind command.
        """
        if not self._preparing.works:
            return None
        prepared = self._preparing.handle_outcome(outcome, now)
        return None if prepared is None else self._prepared(prepared)

    def _prepared(self, prepared: PreparationResult) -> list[Command] | BindingRefused:
        binding = self._by_pod[prepared.pod.id]
        if prepared.refusal is not None:
            return self._undo(binding, prepared.refusal)
        return self._bind(binding)

    def cancel(self, pod: PodInfo) -> bool:
        """Cancel PreBind of `pod`, so that `resume` refuses the binding of the pod.

        Returns False if the pod is not in PreBind.

        upstream: framework/runtime/pods_in_prebind_map.go: CancelPod
        """
        status = self._preparing.cancel(pod)
        if status is not None:
            self._canceled[pod.id] = status
        return status is not None

    def resume(self, now: Instant) -> Iterator[tuple[PodBinding, list[Command] | BindingRefused]]:
        """Continue the bindings whose wait for Permit or PreBind is over; refuse canceled bindings.

        Yields each of these bindings with its next commands or its refusal.
        """
        while self._canceled:
            pod_id = next(iter(self._canceled))
            binding = self._by_pod[pod_id]
            yield binding, self._undo(binding, self._canceled.pop(pod_id))
        for prepared in self._preparing.check(now):
            binding = self._by_pod[prepared.pod.id]
            yield binding, self._prepared(prepared)
        while (waiting := self._waiting.decided(now)) is not None:
            self._waiting.remove(waiting.pod.id)
            binding = self._by_pod[waiting.pod.id]
            if waiting.rejection is not None:
                yield binding, self._undo(binding, waiting.rejection)
            else:
                yield binding, self._pre_bind(binding, now, is_expected=True)

    def bound(self, bind: Bind | CallExtender) -> PodBinding | None:
        """Run PostBind for the pod of `bind`; remove and return the pod's binding.

        Returns None if the pod is not being bound.
        """
        binding = self._by_pod.pop(_id_of(bind), None)
        if binding is not None:
            for plugin in binding.framework.post_bind:
                attempt(plugin, partial(plugin.post_bind, binding.pod, binding.node))
        return binding

    def failed(self, bind: Bind, message: str) -> BindingRefused | None:
        """Revert the binding of the pod of `bind`, and return the refusal.

        `message` is the API server's error message. Returns None if the pod is not being bound.
        """
        binding = self._by_pod.get(_id_of(bind))
        if binding is None:
            return None
        plugin = binding.framework.bind[0].name
        return self._undo(binding, error(f'running Bind plugin "{plugin}": {message}'))

    def extender_responded(
        self, call: CallExtender, answer: CallOutcome
    ) -> PodBinding | list[Command] | BindingRefused | None:
        """Handle the answer of an extender to a bind call.

        Returns the finished binding, or a refusal. If a call to an ignorable extender failed, the
        Bind plugins bind the pod, and their commands are returned. Returns None if no binding waits
        for `call`.

        upstream: schedule_one.go: extendersBinding
        """
        binding = self._by_pod.get(_id_of(call))
        if binding is None or self._extender_calls.get(binding.pod.id) is not call:
            return None
        del self._extender_calls[binding.pod.id]
        calls = ExtenderCalls(
            call.extender, self._extenders[call.extender], binding.pod, self._reporter
        )
        try:
            result = read_answer(calls, answer, BindingResult)
        except ExtenderError as cause:
            result = BindingResult(str(cause))
        if not result.error:
            return self.bound(call)
        if calls.extender.ignorable:
            calls.ignore(calls.extender.bind_verb, result.error)
            return self._bind_by_plugin(binding)
        return self._undo(binding, error(result.error))

    def _undo(self, binding: PodBinding, status: Status) -> BindingRefused:
        commands = tuple(_release_commands(binding))
        run_unreserve(binding)
        self._extender_calls.pop(binding.pod.id, None)
        del self._by_pod[binding.pod.id]
        self._cluster.forget(binding.pod)
        return BindingRefused(binding, status, commands=commands)


def _release_commands(binding: PodBinding) -> Iterator[PreparationCommand]:
    for plugin in reversed(binding.framework.reserve):
        if isinstance(plugin, Releaser):
            call = partial(plugin.release_commands, binding.state, binding.pod, binding.node)
            answer = attempt(plugin, call)
            if not isinstance(answer, Status):
                yield from answer


def run_reserve(binding: PodBinding) -> Status | None:
    """Run the Reserve plugins; return the first refusal, None if all of them succeed."""
    for plugin in binding.framework.reserve:
        try:
            status = plugin.reserve(binding.state, binding.pod, binding.node)
        except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
            status = crashed(plugin, cause)
        if status is not None and not status.is_success:
            return status.by(plugin.name)
    return None


def run_unreserve(binding: PodBinding) -> None:
    """Run Unreserve for all Reserve plugins in reverse order."""
    for plugin in reversed(binding.framework.reserve):
        attempt(plugin, partial(plugin.unreserve, binding.state, binding.pod, binding.node))


def run_permit(binding: PodBinding) -> dict[str, DurationNs] | Status:
    """Run the Permit plugins; return {plugin name: timeout in ns}.

    The result contains each plugin that makes the pod wait. If a plugin refuses the pod, the
    refusal is returned instead.
    """
    pending: dict[str, DurationNs] = {}
    for plugin in binding.framework.permit:
        answer: Status | Wait | None
        try:
            answer = plugin.permit(binding.state, binding.pod, binding.node)
        except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
            answer = crashed(plugin, cause)
        if isinstance(answer, Wait):
            pending[plugin.name] = min(answer.timeout, PERMIT_TIMEOUT_MAX)
        elif answer is not None and not answer.is_success:
            return answer.by(plugin.name)
    return pending


def _expect(binding: PodBinding) -> list[Command]:
    """Return the patch that nominates the chosen node; [] if the pod's status names it already."""
    if binding.pod.pod.status.nominated_node_name == binding.node:
        return []
    return [PatchStatus(binding.pod.ref, fields={"nominatedNodeName": binding.node})]


def _id_of(bind: Bind | CallExtender) -> str:
    return bind.pod.uid or bind.pod.key


def bound_event(pod: PodInfo, node: str) -> RecordEvent:
    """Return the Scheduled event for `node`."""
    return RecordEvent(
        regarding=pod.ref,
        type="Normal",
        reason="Scheduled",
        action="Binding",
        note=f"Successfully assigned {pod.key} to {node}",
        reporting_controller=pod.pod.spec.scheduler_name,
    )
