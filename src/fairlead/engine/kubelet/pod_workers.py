"""PodWorkers: runs the lifecycle of the pods bound to simulated nodes.

A bound pod has a worker, which waits in a timer queue for the pod's next act (`pod_lifecycle`).
Exception: a *settled* pod needs no act when it is loaded. A settled pod gets a worker only when
something happens on its node. So the amount of work depends on the number of changes, not on the
number of nodes or pods.

A kubelet decides whether it admits a pod when it first sees the pod (`pod_admission`). The kubelet
reports a rejection only after the start delay of the pod. Otherwise a controller that replaces
failed pods immediately would create an endless number of pods at one instant. Rejections that are
repeated for a long time are reported later (`repeated_rejection`). When pods of the node have
changed, the kubelet decides again about deferred resizes (`pod_resize`). The kubelet decides about
one pod at a time, pods of higher priority first.

The pods of a stopped or unknown node are frozen. Actions that become due are postponed until the
kubelet resumes. The postponed actions then happen in the order of their due times. Actions that
result from changes of running pods are planned only when the kubelet resumes. The resumed kubelet
also observes deletions. Pods that were marked not ready become ready again. If the machine had been
down, no container runs any more. Terminating pods are then gone, and pods with restartPolicy Never
have failed. The containers of all other pods start again.

upstream: pkg/kubelet/pod_workers.go, pkg/kubelet/kubelet.go:HandlePodAdditions,
pkg/kubelet/kuberuntime/kuberuntime_manager.go:computePodActions (after the loss of the sandbox)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import (
    condition,
    is_static,
    is_terminal,
    is_terminating,
    pod_priority,
)
from fairlead.api.pods.replicas import Replicas
from fairlead.api.pods.usage import usage_problem
from fairlead.engine.core.command import (
    Command,
    Condition,
    DeleteObject,
    ObjectRef,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.stimulus import FailureReason, ObjectsLoaded
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.kubelet import pod_status
from fairlead.engine.kubelet.annotation import annotation_problems, ready_delay
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.kubelet.pod_admission import ADMITTED, Admission, PodRejection, admit
from fairlead.engine.kubelet.pod_lifecycle import (
    STARTABLE_PHASES,
    Act,
    NextAct,
    earlier,
    grace_period,
    has_ready_containers,
    is_ready,
    is_settled,
    next_act,
    own_stop_exit_code,
    ready_delay_of,
    removal_due,
    start_delay_of,
    start_time,
    stop_exit_code,
    stopping_time,
)
from fairlead.engine.kubelet.pod_resize import (
    RESIZE_DEFERRED,
    allocated_pod,
    deferral_note,
    deferral_of,
    deferred,
    is_resize,
)
from fairlead.engine.kubelet.pod_status import readiness, stopped_containers
from fairlead.engine.kubelet.repeated_rejection import RepeatedRejections
from fairlead.engine.kubelet.volume_attachment import SingleNodeVolumes
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

REPORTING_CONTROLLER: Final = "kubelet"
RETRY_AFTER: Final = seconds(1)
# The pause before a further retry is 1/RETRY_PART of the time since the first refusal.
RETRY_PART: Final = 8
WHY_REMOVED: Final = "terminated"
# Acts without an effect on other pods of the node.
_TOGETHER: Final = (Act.READY, Act.RESTART)
# Members that are read often (STYLE.md, rule 19).
_START: Final = Act.START
_RESTART: Final = Act.RESTART
_OBSERVE: Final = Act.OBSERVE
_REJECT: Final = Act.REJECT
_REMOVE: Final = Act.REMOVE
_END: Final = Act.END


class _PodStop(Struct, frozen=True):
    """A pod that the kubelet itself stops.

    At the time `at`, all containers have ended, and the kubelet writes `status`.
    """

    at: Instant
    status: PatchStatus


class _PodWorker(Struct):
    """The worker of a bound pod.

    The fields `bound_at`, `started_at` and `terminating_at` are the parameters of `next_act`.
    """

    ref: ObjectRef
    node: str
    pod: Pod
    bound_at: Instant
    started_at: Instant
    terminating_at: Instant
    # The time at which the pod becomes or became ready. None before the pod starts. Also None if
    # the pod was loaded with unready containers, and no annotation states when they become ready.
    ready_at: Instant | None = None
    pending: NextAct | None = None  # the next act
    sent: NextAct | None = None  # the act whose effect is not observed yet
    is_admitted: bool = False
    rejection: PodRejection | None = None
    # If the kubelet rejects the pod, added to the usual delay of the report.
    rejection_pause: DurationNs = 0
    # Set while the kubelet stops the pod without a deletion request. The reason is a critical pod
    # that needs room, the deadline of the pod, or a machine that was down.
    stopping: _PodStop | None = None
    # Whether the machine of the pod has returned, but the pod's containers have not started again.
    is_lost: bool = False
    deferral: Condition | None = None  # the condition of a deferred resize
    # Whether an event has been recorded about a volume for which the pod waits.
    is_attach_error_reported: bool = False
    # The time of the first refusal of the current act; None if the API server has not refused it.
    refused_since: Instant | None = None


class _Timer(Struct, frozen=True):
    worker: _PodWorker
    due: NextAct


class PodWorkers(Struct):
    """The workers of bound pods.

    `is_reporting` returns whether the kubelet of a node works. If `cluster` is None, kubelets admit
    all pods.
    """

    config: KubeletConfig
    is_reporting: Callable[[str], bool]
    cluster: Cluster | None = None
    _workers: dict[str, _PodWorker] = field(default_factory=dict)  # by pod key
    _by_node: dict[str, dict[str, _PodWorker]] = field(default_factory=dict)
    # Pods loaded at `_loaded_at`, by node, then by key. A settled pod gets its worker when
    # something happens on its node. Most settled pods never get a worker.
    _loaded: dict[str, dict[str, Pod]] = field(default_factory=dict)
    _settled: dict[str, str] = field(default_factory=dict)  # {key of a settled pod: its node}
    _loaded_at: Instant = 0
    _timers: TimerQueue[_Timer] = field(default_factory=TimerQueue)
    _expired: deque[_Timer] = field(default_factory=deque)  # due acts that were not done yet
    # Timers that expired while the kubelet of the node did not work, by node.
    _suspended: dict[str, list[_Timer]] = field(default_factory=dict)
    # Pods that a kubelet has not seen because it does not work, by node.
    _unseen: dict[str, list[_PodWorker]] = field(default_factory=dict)
    # Workers of running pods that have changed while the kubelet did not work, by node, then by pod
    # key. Their next acts are planned when the kubelet resumes.
    _unplanned: dict[str, dict[str, _PodWorker]] = field(default_factory=dict)
    # Workers of pods whose next act is not END, by pod key. If a worker has no pending act, its
    # act was sent already.
    _changing: dict[str, _PodWorker] = field(default_factory=dict)
    # Workers whose pods wait for a volume, by pod key, by the key of the pod that holds the volume.
    _awaiting: dict[str, dict[str, _PodWorker]] = field(default_factory=dict)
    # Workers of pods about whose resize a simulated kubelet has not decided yet, by pod key.
    _resized: dict[str, _PodWorker] = field(default_factory=dict)
    # Workers of pods whose resize is deferred, by node, then by pod key.
    _deferred: dict[str, dict[str, _PodWorker]] = field(default_factory=dict)
    # Workers of rejected pods whose rejection is reported after a pause, by node, then by pod key.
    _rejected: dict[str, dict[str, _PodWorker]] = field(default_factory=dict)
    _rejections: RepeatedRejections = field(default_factory=RepeatedRejections)
    _volumes: SingleNodeVolumes | None = None

    def __post_init__(self) -> None:
        """Set `_volumes`, which finds pods whose volumes are still attached to other nodes.

        If `cluster` is None, `_volumes` stays None, and pods do not wait for volumes.
        """
        if self.cluster is not None:
            self._volumes = SingleNodeVolumes(self.cluster)

    # --- time ----------------------------------------------------------------------------------

    def next_due(self) -> Instant | None:
        """Return the time at which the next act is due; None if no act is pending."""
        return self._expired[0].due.at if self._expired else self._timers.next_due()

    def is_waiting(self) -> bool:
        """Return whether any running kubelet waits for a pod to start, become ready or stop.

        Running pods that will end by themselves, such as pods of Jobs, are ignored.
        """
        return any(
            worker.pending is not None and self.is_reporting(worker.node)
            for worker in self._changing.values()
        )

    def act(self, now: Instant) -> list[Command]:
        """Return the commands of the next act that is due.

        Usually a call handles one act, so that its effects are observed before the next act. Acts
        of the kinds READY and RESTART have no effect on other pods. So one call handles all such
        acts that follow one another.
        """
        commands: list[Command] = []
        for timer in self._due_timers(now):
            if timer.due is not timer.worker.pending:
                continue
            act = timer.due.act
            if commands and act not in _TOGETHER:
                self._expired.appendleft(timer)
                break
            if not self.is_reporting(timer.worker.node):
                self._suspended.setdefault(timer.worker.node, []).append(timer)
                continue
            if act is _START and (errors := self._mount_errors(timer.worker, now)):
                commands += errors
                continue
            if act is _START and self._awaits_volume(timer.worker, now):
                commands += self._attach_errors(timer.worker, now)
                continue
            commands += [*_final_status(timer, self.config), *self._act(timer.worker, now)]
            if act not in _TOGETHER:
                break
        return commands

    # --- observations --------------------------------------------------------------------------

    def load_settled(self, loaded: ObjectsLoaded, now: Instant) -> Sequence[Pod]:
        """Load the pods of `loaded` that need no action yet (`is_settled`); return the others.

        The caller must pass the returned pods to `observe`. If `config.manages_pods` is False, or
        if pods were loaded or observed before, all pods of `loaded` are returned.
        """
        if not self.config.manages_pods or self._workers or self._settled:
            return loaded.pods
        self._loaded_at, self._loaded = now, loaded.bound_pods.copy()
        self._settled = loaded.bound_nodes.copy()
        others = [pod for replicas in loaded.replicas for pod in self._unsettled(replicas)]
        for pod in others:
            self._settled.pop(pod.key, None)
        return others

    def _unsettled(self, replicas: Replicas) -> Iterable[Pod]:
        """Return the pods of `replicas` that have no node, or for which `is_settled` is False."""
        if not replicas[0].spec.node_name:
            return replicas
        if self.config.run_durations is not None:  # durations may differ among the pods
            return [pod for pod in replicas if not is_settled(pod, self.config)]
        return () if is_settled(replicas[0], self.config) else replicas

    def _find(self, key: str) -> _PodWorker | None:
        worker = self._workers.get(key)
        if worker is None and (node := self._settled.get(key)) is not None:
            self._make_workers(node)
            worker = self._workers.get(key)
        return worker

    def _make_workers(self, node: str) -> None:
        """Make workers for all settled pods on `node`, in the order in which they were loaded.

        The module docstring explains settled pods.
        """
        loaded = self._loaded.pop(node, None)
        if loaded is None:
            return
        made = self._by_node.pop(node, {})
        workers: dict[str, _PodWorker] = {}
        for key, pod in loaded.items():
            if key in self._settled:
                del self._settled[key]
                at = self._loaded_at
                workers[key] = self._workers[key] = _new_worker(pod, at, at)
            elif key in made:
                workers[key] = made[key]
        workers |= made
        if workers:
            self._by_node[node] = workers

    def observe(self, pod: Pod, now: Instant, terminating_at: Instant) -> list[Command]:
        """Apply a new version of `pod`.

        For a new pod, return warnings about its annotations. If the kubelet stops other pods to
        make room for the new pod, also return events about the other pods. `terminating_at` is the
        time at which the termination began. `terminating_at` matters only for a new pod that is
        already terminating.
        """
        if not pod.spec.node_name or not self.config.manages_pods:
            return []
        key = pod.key
        worker = self._find(key)
        if worker is not None and worker.ref.uid == pod.metadata.uid:
            if is_terminal(pod):
                self._release(worker.pod, now)
            before, held_room = worker.pod, _is_admitted(worker)
            was_running = _is_running(before)
            _update(worker, pod, now)
            if not self.config.accepts_pods and _changes_resources(before, pod):
                self._resized[key] = worker
            # An act that was sent is not planned again before `_plan` has seen its result.
            is_quiet = worker.sent is None and was_running and _is_running(pod)
            if is_quiet and not self.is_reporting(worker.node):
                self._unplanned.setdefault(worker.node, {})[key] = worker
                return []
            self._plan(worker)
            self._plan_deferred(worker.node)
            if held_room and self._rejected and (is_terminal(pod) or pod.spec != before.spec):
                self._admit_rejected(worker.node, now)
            return []
        self._remove(key)
        worker = self._workers[key] = _new_worker(pod, now, terminating_at)
        self._by_node.setdefault(worker.node, {})[key] = worker
        if self.config.accepts_pods:
            self._set_deferral(worker, deferral_of(pod))
        commands = self._admit(worker, now)
        self._plan(worker)
        return [*_warnings(worker), *commands]

    def resume(self, node: str, now: Instant) -> list[Command]:
        """Let the actions that were postponed for pods on `node` become due now.

        Also decide again about the rejected pods for which the node may have room now. Also decide
        about the pods that the kubelet sees for the first time. If the kubelet stops other pods to
        free resources for one of these pods, return the events of the stopped pods.
        """
        self._expired.extend(self._suspended.pop(node, ()))
        for worker in self._unplanned.pop(node, {}).values():
            if self._workers.get(worker.ref.key) is worker:
                self._plan(worker)
        self._admit_rejected(node, now)
        commands: list[Command] = []
        for worker in self._unseen.pop(node, ()):
            if self._workers.get(worker.ref.key) is worker:
                worker.bound_at = now
                commands += self._admit(worker, now)
                self._plan(worker)
        self._plan_deferred(node)
        return commands

    def kubelet_resumed(self, node: str, now: Instant, *, was_down: bool) -> list[Command]:
        """Continue the pods on `node` after its kubelet has resumed.

        If the node was down (`was_down`), its containers no longer run. Otherwise the grace periods
        of terminating pods begin now. Returns events about the pods that stop to make room for
        other pods (see `resume`). If a ready pod has lost its containers, the result also contains
        the status patch that marks this pod as not ready.
        """
        if was_down:
            self._unplanned.pop(node, None)  # the loop below plans the acts of all pods
        commands = self.resume(node, now)
        self._make_workers(node)
        for worker in [*self._by_node.get(node, {}).values()]:
            if is_terminating(worker.pod):
                takes = removal_due(worker.pod, now, self.config) - now
                worker.terminating_at, worker.pending = now - takes if was_down else now, None
                worker.is_lost = was_down and worker.pod.status.phase == "Running"
                self._plan(worker)
            elif was_down:
                commands += self._restart(worker, now)
        return commands

    def _restart(self, worker: _PodWorker, now: Instant) -> list[Command]:
        """Plan how the pod continues after its machine was down.

        A running pod with restartPolicy Never fails if it is not static. The containers of any
        other running pod start again. If such a pod is ready, return the status patch that marks it
        as not ready. A pod that does not run yet waits for its start delay again.
        """
        pod, commands = worker.pod, list[Command]()
        if pod.status.phase != "Running":
            worker.bound_at = now
        elif pod.spec.restart_policy == "Never" and not is_static(pod):
            worker.stopping = _PodStop(now, pod_status.lost(worker.ref, pod))
        else:
            worker.is_lost = bool(pod.spec.containers)
            worker.started_at = now + start_delay_of(pod, self.config)
            if _was_ready(worker):
                worker.ready_at = worker.started_at + ready_delay_of(pod, self.config)
            if is_ready(pod):
                commands.append(pod_status.interrupted(worker.ref, pod))
        self._plan(worker)
        return commands

    def forget(self, gone: Pod, now: Instant) -> None:
        """Remove the worker of the deleted pod `gone`."""
        self._release(gone, now)
        worker = self._find(gone.key)
        if worker is not None and worker.ref.uid == gone.metadata.uid:
            self._remove(gone.key)
            self._plan_deferred(worker.node)
            if _is_admitted(worker):
                self._admit_rejected(worker.node, now)

    def observe_refused(
        self, command: PatchStatus | DeleteObject, reason: FailureReason, now: Instant
    ) -> None:
        """Retry a refused write, if the pod still exists.

        An admission policy may refuse the write every time. Therefore the pause before a retry
        grows in proportion to the time since the first refusal. The number of retries then grows
        only with the logarithm of the time, so a simulation can follow them for days.
        """
        worker = self._find(command.target.key)
        if worker is None or worker.ref != command.target:
            return
        if reason is FailureReason.NOT_FOUND:
            return
        if worker.sent is not None and _is_command_of(command, worker.sent):
            if worker.refused_since is None:
                worker.refused_since = now
            pause = max(RETRY_AFTER, (now - worker.refused_since) // RETRY_PART)
            again = NextAct(worker.sent.act, now + pause, worker.sent.why)
            worker.sent, worker.pending = None, again
            worker.is_lost |= again.act is _RESTART
            self._timers.add(again.at, _Timer(worker, again))

    # --- volumes -------------------------------------------------------------------------------

    def awaiting_volumes(self) -> dict[str, str]:
        """Return {key of a pod that waits for a volume: key of the pod that holds the volume}."""
        return {
            key: holder
            for holder, waiting in self._awaiting.items()
            for key, worker in waiting.items()
            if self._workers.get(key) is worker and not is_terminating(worker.pod)
        }

    def _mount_errors(self, worker: _PodWorker, now: Instant) -> list[Command]:
        """Delay the start of the pod, and return an event, if its claims cannot be mounted yet.

        Returns [] if the pod can start.
        """
        if self.cluster is None or not self.config.waits_for_claims or not worker.pod.spec.volumes:
            return []
        # Imported here, because simulations do not wait for claims.
        from fairlead.engine.kubelet.claim_mount import (  # noqa: PLC0415
            FAILED_MOUNT,
            RETRY,
            mount_error,
        )

        why = mount_error(worker.pod, self.cluster.related)
        if not why:
            return []
        worker.bound_at = now + RETRY
        self._plan(worker)
        return [_event(worker.ref, "Warning", FAILED_MOUNT, why)]

    def _awaits_volume(self, worker: _PodWorker, now: Instant) -> bool:
        """Delay the start of the worker's pod if a volume of this pod is attached elsewhere.

        Returns whether the start is delayed. The delay ends when the pod that uses the volume on
        another node has ended or is deleted. If that node is lost, the delay ends when the volume
        is detached.
        """
        if self._volumes is None:
            return False
        free_at, holder = self._volumes.free_at(worker.pod), self._volumes.holder_of(worker.pod)
        if free_at > now:
            worker.bound_at = free_at
            self._plan(worker)
        elif holder is not None:
            worker.pending = None
            self._awaiting.setdefault(holder.key, {})[worker.ref.key] = worker
        return free_at > now or holder is not None

    def _attach_errors(self, worker: _PodWorker, now: Instant) -> Iterator[RecordEvent]:
        """Yield an event about the volume that the pod waits for, but only in the first call."""
        if self._volumes is not None and not worker.is_attach_error_reported:
            worker.is_attach_error_reported = True
            yield self._volumes.attach_error(worker.pod, now)

    def _release(self, holder: Pod, now: Instant) -> None:
        """Start the pods that wait for volumes of `holder`, a pod that was deleted or has ended."""
        if self._volumes is not None and not self.is_reporting(holder.spec.node_name):
            self._volumes.delay_detach(holder, now)
        for key, worker in self._awaiting.pop(holder.key, {}).items():
            if self._workers.get(key) is worker:
                worker.bound_at = now
                self._plan(worker)

    # --- admission -----------------------------------------------------------------------------

    def _admit(self, worker: _PodWorker, now: Instant) -> list[Command]:
        """Decide whether the kubelet admits the pod, and record the decision in `worker`.

        Returns the events of the pods that must stop to make room for the pod.
        """
        if not _awaits_admission(worker.pod):
            worker.is_admitted = True
            return []
        if not self.is_reporting(worker.node):
            self._unseen.setdefault(worker.node, []).append(worker)
            return []
        decision = self._decide(worker)
        worker.is_admitted, worker.rejection = decision.rejection is None, decision.rejection
        if worker.is_admitted:
            self._rejections.end(worker.pod)
        elif self.config.spaces_rejections:
            delay = start_delay_of(worker.pod, self.config)
            worker.rejection_pause = self._rejections.pause_before(worker.pod, now, delay)
            if worker.rejection_pause:
                self._rejected.setdefault(worker.node, {})[worker.ref.key] = worker
        return self._preempt(worker, decision.victims, now)

    def _admit_rejected(self, node: str, now: Instant) -> None:
        """Admit each pod on `node` that fits now and whose rejection is not reported yet.

        A real kubelet would have reported the rejection immediately. A controller would then have
        replaced the pod, and the kubelet would now admit the replacement. So this method admits the
        pod itself.
        """
        if not self._rejected or not self.is_reporting(node):
            return
        for worker in list(self._rejected.get(node, {}).values()):
            if _awaits_admission(worker.pod) and self._decide(worker) == ADMITTED:
                self._drop_rejected(worker)
                worker.is_admitted, worker.rejection, worker.bound_at = True, None, now
                self._rejections.end(worker.pod)
                self._plan(worker)

    def _drop_rejected(self, worker: _PodWorker) -> None:
        """Remove the pod of `worker` from the rejected pods that wait for room on their node."""
        there = self._rejected.get(worker.node)
        if there is not None and there.pop(worker.ref.key, None) is not None and not there:
            del self._rejected[worker.node]

    def _decide(self, worker: _PodWorker) -> Admission:
        """Return whether the kubelet admits the pod, judged by the requests in the pod's spec."""
        if self.cluster is None:
            return ADMITTED
        node, pod = self.cluster.table.find(worker.node), self.cluster.pods.get(worker.ref.key)
        if node is None or pod is None or pod.id not in node.pods:
            return ADMITTED  # the pod or the node has already been deleted
        resources = self.cluster.table.resources.names
        return admit(pod, node, lambda: self._admitted_on(node, pod), resources)

    def _admitted_on(self, node: NodeInfo, pod: PodInfo) -> list[PodInfo]:
        others = (one for one in node.pods.values() if one is not pod and self._has_admitted(one))
        return [self._allocated(one) for one in others]

    def _allocated(self, pod: PodInfo) -> PodInfo:
        is_resized = pod.key in self._resized or deferral_of(pod.pod) is not None
        if self.cluster is None or not is_resized:
            return pod
        own = allocated_pod(pod.pod)
        return PodInfo(own, self.cluster.shapes.shape_of(own), pod.key)

    def _has_admitted(self, pod: PodInfo) -> bool:
        if not _awaits_admission(pod.pod):
            return True
        worker = self._workers.get(pod.key)
        return worker is not None and _is_admitted(worker) and worker.ref.uid == pod.uid

    def _preempt(self, worker: _PodWorker, victims: Iterable[Pod], now: Instant) -> list[Command]:
        """Stop `victims`, one after the other, before the pod of `worker` starts."""
        commands: list[Command] = []
        for pod in victims:
            victim = self._find(pod.key)
            if victim is None or victim.stopping is not None:
                continue
            if pod.status.phase == "Running":
                worker.bound_at = max(now, worker.bound_at) + stopping_time(pod, self.config)
            status = pod_status.preempted(victim.ref)
            victim.stopping = _PodStop(worker.bound_at, status)
            self._plan(victim)
            what = pod_status.PREEMPTING, pod_status.PREEMPTED_MESSAGE
            commands.append(_event(victim.ref, "Warning", *what))
        return commands

    def _next_act(self, worker: _PodWorker) -> NextAct | None:
        pod, never_stops = worker.pod, self.config.never_stops
        if never_stops is not None and not worker.is_lost and never_stops(pod):
            return None
        if worker.rejection is not None and _awaits_admission(pod):
            delay = start_delay_of(pod, self.config) + worker.rejection_pause
            return NextAct(_REJECT, worker.bound_at + delay)
        due = next_act(
            pod,
            bound_at=worker.bound_at,
            started_at=worker.started_at,
            terminating_at=worker.terminating_at,
            ready_at=worker.ready_at,
            config=self.config,
        )
        if worker.is_lost and pod.status.phase == "Running" and not is_terminating(pod):
            # One write reports the restart and, if the pod was ready, that it is ready again.
            at = worker.started_at if worker.ready_at is None else worker.ready_at
            due = earlier(NextAct(_RESTART, at), due)
        is_resized = bool(self._resized) and worker.ref.key in self._resized
        if (is_resized and _is_running(pod)) or self._is_room_for_resize(worker):
            due = earlier(NextAct(_OBSERVE, worker.started_at), due)
        if worker.stopping is None or is_terminal(pod):
            return due
        stop = NextAct(Act.STOP, worker.stopping.at)
        return earlier(stop, due) if is_terminating(pod) else stop

    def _plan(self, worker: _PodWorker) -> None:
        due = self._next_act(worker)
        if due is not None and worker.sent is not None and due.act is worker.sent.act:
            worker.pending = None
            return
        if worker.sent is not None:  # its effect is observed
            worker.refused_since = None
        worker.sent = None
        if due is None:
            worker.pending = None
        elif not _is_pending_already(due, worker.pending):
            worker.pending = due
            self._timers.add(due.at, _Timer(worker, due))
        if due is None or due.act is _END:
            self._changing.pop(worker.ref.key, None)
        else:
            self._changing[worker.ref.key] = worker

    # --- resizes -------------------------------------------------------------------------------

    def unfinished_resizes(self) -> dict[str, str]:
        """Return the running pods with an unfinished resize, as {key: why the resize is deferred}.

        The value is "" if the kubelet is not working and has therefore not decided about the
        resize.
        """
        deferred = {
            key: worker.deferral.message
            for there in self._deferred.values()
            for key, worker in there.items()
            if worker.deferral is not None and _is_running(worker.pod)
        }
        undecided = (key for key, worker in self._resized.items() if _is_running(worker.pod))
        return deferred | dict.fromkeys(undecided, "")

    def _set_deferral(self, worker: _PodWorker, deferral: Condition | None) -> None:
        if deferral is None and worker.deferral is None:
            return
        worker.deferral = deferral
        there = self._deferred.setdefault(worker.node, {})
        if deferral is not None:
            there.setdefault(worker.ref.key, worker)
        else:
            there.pop(worker.ref.key, None)
        if not there:
            del self._deferred[worker.node]

    def _plan_deferred(self, node: str) -> None:
        """Schedule the first deferred resize of `node` that now fits."""
        there = self._deferred.get(node)
        if there is None:
            return
        # upstream: pkg/kubelet/allocation/allocation_manager.go:sortPendingResizes
        for worker in sorted(there.values(), key=lambda one: -pod_priority(one.pod)):
            if self._is_room_for_resize(worker):
                self._plan(worker)
                return

    def _is_room_for_resize(self, worker: _PodWorker) -> bool:
        """Return whether the running pod has a deferred resize that fits its node now."""
        pod = worker.pod
        if worker.deferral is None or pod.status.phase != "Running" or is_terminating(pod):
            return False
        return self._decide(worker).rejection is None

    def _report_spec(self, worker: _PodWorker, now: Instant) -> list[Command]:
        """Return the commands that report a changed spec of the pod.

        If a resize does not fit, it is deferred, and an event is recorded. If the configuration
        does not set `accepts_pods`, only resizes are reported, and each deferral is reported only
        once.
        """
        self._resized.pop(worker.ref.key, None)
        is_resized = is_resize(worker.pod)
        decision = self._decide(worker) if is_resized else ADMITTED
        commands = self._preempt(worker, decision.victims, now)
        why, before = decision.rejection, worker.deferral
        self._set_deferral(worker, None if why is None else deferred(why))
        if why is not None and worker.deferral != before:
            note = deferral_note(worker.pod, why)
            commands.append(_event(worker.ref, "Warning", RESIZE_DEFERRED, note))
        if self.config.accepts_pods:
            return [*commands, self._change(worker, _OBSERVE, now)]
        if worker.deferral == before and (before is not None or not is_resized):
            # The status does not change, so no change of the pod causes the next plan.
            worker.sent = None
            self._plan(worker)
            return commands
        if worker.deferral is None:
            return [*commands, pod_status.resized(worker.ref, worker.pod)]
        return [*commands, PatchStatus(worker.ref, conditions=(worker.deferral,))]

    def _remove(self, key: str) -> None:
        worker = self._workers.pop(key, None)
        if worker is not None:
            self._set_deferral(worker, None)
            self._resized.pop(key, None)
            self._drop_rejected(worker)
            self._changing.pop(key, None)
            self._make_workers(worker.node)
            worker.pending = None
            there = self._by_node[worker.node]
            del there[key]
            if not there:
                del self._by_node[worker.node]

    # --- due actions ---------------------------------------------------------------------------

    def _due_timers(self, now: Instant) -> Iterator[_Timer]:
        if not self._expired:
            self._expired.extend(self._timers.pop_due(now))
        while self._expired:
            yield self._expired.popleft()

    def _act(self, worker: _PodWorker, now: Instant) -> list[Command]:
        due = worker.pending
        assert due is not None
        worker.pending, worker.sent = None, due
        if due.act is _END and due.why != "completed":
            return self._exceed_deadline(worker, now)
        if due.act is _REJECT and worker.rejection is not None:
            why = worker.rejection
            self._drop_rejected(worker)
            event = _event(worker.ref, "Warning", why.reason, why.message)
            return [event, pod_status.rejected(worker.ref, why, now)]
        if due.act is _OBSERVE:
            return self._report_spec(worker, now)
        return [self._change(worker, due.act, now)]

    def _change(self, worker: _PodWorker, act: Act, now: Instant) -> Command:
        ready = readiness(worker.pod, applies_readiness_gates=self.config.applies_readiness_gates)
        match act:  # the most frequent acts come first
            case Act.RESTART:
                worker.is_lost = False
                shown = None if worker.ready_at is None else ready
                return pod_status.restarted(worker.ref, worker.pod, shown)
            case Act.START:
                delay = ready_delay_of(worker.pod, self.config)
                worker.started_at, worker.ready_at = now, now + delay
                shown = None if delay else ready
                return pod_status.running(worker.ref, worker.pod, worker.bound_at, shown)
            case Act.ACCEPT:
                return pod_status.accepted(worker.ref, worker.pod, now)
            case Act.READY:
                return pod_status.made_ready(worker.ref, ready, worker.deferral)
            case Act.OBSERVE:
                # A pod without conditions counts as ready (`pod_set.ready_since`).
                is_up = not worker.pod.status.conditions or (
                    worker.ready_at is not None and worker.ready_at <= now
                )
                shown = ready if is_up else None
                return pod_status.observed(worker.ref, worker.pod, shown, worker.deferral)
            case Act.REMOVE:
                return DeleteObject(worker.ref, grace_period_s=0, why=WHY_REMOVED)
            case Act.STOP:
                return self._stopped(worker)
            case _:
                return pod_status.succeeded(worker.ref)

    def _stopped(self, worker: _PodWorker) -> PatchStatus:
        """Return the status of a pod that the kubelet has stopped, or that a client has ended."""
        if worker.stopping is not None:
            return worker.stopping.status
        if worker.pod.status.phase == "Succeeded":
            return pod_status.succeeded(worker.ref)
        code = own_stop_exit_code(worker.pod, self.config)
        return pod_status.stopped(worker.ref, worker.pod, code)

    def _exceed_deadline(self, worker: _PodWorker, now: Instant) -> list[Command]:
        """Stop a pod at its deadline. The pod fails when its containers have stopped."""
        # upstream: pkg/kubelet/active_deadline.go:ShouldEvict,
        # pkg/kubelet/status/status_manager.go:mergePodStatus
        what = pod_status.DEADLINE_EXCEEDED, pod_status.DEADLINE_MESSAGE
        event, failure = (
            _event(worker.ref, "Normal", *what),
            pod_status.deadline_exceeded(worker.ref),
        )
        if worker.pod.status.phase != "Running":
            return [event, failure]
        worker.stopping = _PodStop(now + stopping_time(worker.pod, self.config), failure)
        worker.sent = None
        self._plan(worker)
        return [event]


def _new_worker(pod: Pod, now: Instant, terminating_at: Instant) -> _PodWorker:
    meta = pod.metadata
    started = start_time(pod)
    started_at = now if started is None else started
    return _PodWorker(
        ref=ObjectRef("Pod", meta.namespace, meta.name, meta.uid),
        node=pod.spec.node_name,
        pod=pod,
        bound_at=now,
        started_at=started_at,
        terminating_at=terminating_at,
        ready_at=now if has_ready_containers(pod) else _ready_by_annotation(pod, started_at),
    )


def _ready_by_annotation(pod: Pod, started_at: Instant) -> Instant | None:
    """Return when a running pod becomes ready according to its annotation `ready-delay`.

    Returns None if the pod is not running or lacks the annotation.
    """
    delay = ready_delay(pod)
    return None if delay is None or pod.status.phase != "Running" else started_at + delay


def _final_status(timer: _Timer, config: KubeletConfig) -> list[Command]:
    """Return the last status patch of a pod that is removed, or [] if the patch has no reader.

    On a cluster with clients, the patch is always returned, because a client may see the last
    status in a watch. In a simulation without clients, the patch is returned if finalizers keep the
    pod in the API.
    """
    # upstream: pkg/kubelet/status/status_manager.go:TerminatePod
    pod = timer.worker.pod
    is_over = is_terminal(pod) or is_static(pod)
    is_read = config.accepts_pods or bool(pod.metadata.finalizers)
    if timer.due.act is not _REMOVE or is_over or not is_read:
        return []
    if timer.worker.is_lost:
        return [pod_status.lost(timer.worker.ref, pod)]
    return [pod_status.stopped(timer.worker.ref, pod, stop_exit_code(pod, config))]


def _update(worker: _PodWorker, pod: Pod, now: Instant) -> None:
    """Store `pod`, the new version of the worker's pod.

    A grace period that begins or is shortened counts from `now`. If a client has ended the pod, the
    time that its containers take to stop also counts from `now`.
    """
    before, worker.pod = worker.pod, pod
    if is_terminal(pod) and not is_terminal(before):
        worker.terminating_at = now
    if worker.ready_at is None and (is_ready(pod) or _runs_again(before, pod)):
        worker.ready_at = now
    if is_terminating(pod) and (
        not is_terminating(before) or grace_period(pod) < grace_period(before)
    ):
        worker.terminating_at = now


def _runs_again(before: Pod, after: Pod) -> bool:
    """Return whether a client has written that the stopped containers of a pod run again."""
    is_running = before.status.phase == after.status.phase == "Running"
    return is_running and bool(stopped_containers(before)) and not stopped_containers(after)


def _changes_resources(before: Pod, after: Pod) -> bool:
    """Return whether the pod's containers have changed and the pod now needs a resize.

    `before` and `after` are two successive versions of the pod; see `is_resize`.
    """
    old, new = before.spec, after.spec
    if old is new or (old.containers, old.init_containers) == (new.containers, new.init_containers):
        return False
    return is_resize(after)


def _is_running(pod: Pod) -> bool:
    return pod.status.phase == "Running" and not is_terminating(pod)


def _was_ready(worker: _PodWorker) -> bool:
    """Return whether the pod has been ready, or would become ready if nothing interrupted it."""
    if worker.ready_at is not None:
        return True
    found = condition(worker.pod, "Ready")
    return found is not None and not found.reason


def _is_pending_already(due: NextAct, pending: NextAct | None) -> bool:
    """Return whether `pending`, the act for which the pod waits, makes the act `due` unnecessary.

    The result is True if `pending` is the same act as `due` and happens at the same time. It is
    also True if both acts are removals and `due` is later, because a removal is never postponed.
    """
    # upstream: pkg/kubelet/pod_workers.go:calculateEffectiveGracePeriod only takes shorter ones
    if pending is None or due.act is not pending.act:
        return False
    return due.at == pending.at or (due.act is _REMOVE and due.at > pending.at)


def _is_command_of(command: PatchStatus | DeleteObject, sent: NextAct) -> bool:
    return isinstance(command, DeleteObject) == (sent.act is _REMOVE)


def _is_admitted(worker: _PodWorker) -> bool:
    """Return True if the pod is admitted or needs no decision of the kubelet, otherwise False."""
    return worker.is_admitted or not _awaits_admission(worker.pod)


def _awaits_admission(pod: Pod) -> bool:
    """Return whether the kubelet has to decide whether it admits `pod`."""
    status = pod.status
    is_new = status.phase in STARTABLE_PHASES and not status.start_time
    return is_new and not is_terminating(pod) and not is_static(pod)


def _event(regarding: ObjectRef, kind: str, reason: str, note: str) -> RecordEvent:
    return RecordEvent(regarding, kind, reason, "", note, REPORTING_CONTROLLER)


def _warnings(worker: _PodWorker) -> list[Command]:
    return [
        RecordEvent(
            regarding=worker.ref,
            type="Warning",
            reason="InvalidAnnotation",
            action="Starting",
            note=problem,
            reporting_controller=REPORTING_CONTROLLER,
        )
        for problem in (*annotation_problems(worker.pod), usage_problem(worker.pod))
        if problem
    ]
