"""AuditedInput: the actions of users in a cluster's audit log, as steps of a scenario.

The simulation has its own controllers, scheduler and kubelets, so writes of these kinds are left
out:

    an object that a known object controls     its controller creates it again (the Jobs of a
                                               CronJob only if the simulation runs CronJobs)
    bindings, status                           decided again; only the capacity and the allocatable
                                               amounts of a node are copied
    deletions by the scheduler, evictions      decided again, by preemption and node lifecycle
      after taints, garbage collection
    annotations that controllers write, and    written again by the simulated controllers
      claims that StatefulSets create

All other writes become steps at their recorded times: objects are created, changed (spec, labels
and annotations, as a merge patch) and deleted. A pod is created without an owner if the log records
no owner, or if the owner is missing in the log and in the dump. A pod that completed in the log has
the same runtime in the simulation.

    line  create  deployment shop/web        ->  a step, if an administrator wrote it
    line  create  replicaset shop/web-5d     ->  left out: shop/web controls it
    line  create  pod shop/web-5d-x7         ->  left out: shop/web-5d controls it
    line  update  deployment shop/web/scale  ->  a step that sets spec.replicas
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.nodes.taint import OUT_OF_SERVICE
from fairlead.api.objects import Pod
from fairlead.api.text.count import counted
from fairlead.apiserver.kind import (
    CRON_JOB,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STATEFUL_SET,
    Kind,
    find_kind,
    reference_kind,
)
from fairlead.engine.core.command import Command, ObjectRef
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.whatif.audit.audit_log import SCALE, AuditedWrite, read_audit_log
from fairlead.whatif.audit.generated_name import with_generated_names
from fairlead.whatif.audit.recorded_cluster import (
    RecordedCluster,
    initial_objects,
    manifest_of,
)
from fairlead.whatif.change import commands
from fairlead.whatif.change.kubectl_apply import merge_patch_between
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.scenario.simkube_trace import RecordedLifecycle
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_pool import awaits_agent, is_lasting_taint
from fairlead.whatif.snapshot.snapshot import Snapshot

# The kinds of objects whose dependents the simulation creates.
_CONTROLLING: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob",
                       "ReplicationController", "Node")  # fmt: skip
_ACCOUNT: Final = "system:serviceaccount:kube-system:"
_KUBELET: Final = "system:node:"
# Users whose deletions and changes of pods the simulation decides again.
_SIMULATED_USERS: Final = frozenset(
    {"system:kube-scheduler",
     *(f"{_ACCOUNT}{name}" for name in ("node-controller", "taint-eviction-controller",
                                        "pod-garbage-collector"))}
)  # fmt: skip
_CONTROLLERS: Final = frozenset(
    {"system:kube-controller-manager", "system:apiserver",
     *(f"{_ACCOUNT}{name}" for name in (
         "deployment-controller", "replicaset-controller", "replication-controller",
         "statefulset-controller", "daemon-set-controller", "job-controller", "cronjob-controller",
         "disruption-controller", "generic-garbage-collector", "namespace-controller",
         "persistent-volume-binder", "pvc-protection-controller", "pv-protection-controller",
         "attachdetach-controller", "resource-claim-controller", "ttl-after-finished-controller"))}
)  # fmt: skip
_STATEFUL_SETS: Final = f"{_ACCOUNT}statefulset-controller"
_NOT_FOLLOWED: Final = ("VolumeAttachment", "ResourceClaim")
_PROVISIONED: Final = "pv.kubernetes.io/provisioned-by"
_ORDINAL: Final = re.compile(r"-\d+$")
_SYSTEM: Final = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
     "deletionGracePeriodSeconds", "ownerReferences", "managedFields", "selfLink"}
)  # fmt: skip


class AuditLog(Struct, frozen=True):
    """An audit log, its writes, ordered by time, and notes about its lines."""

    source: str
    writes: Sequence[AuditedWrite]
    notes: Sequence[str] = ()

    @property
    def start(self) -> Instant:
        """The time of the first write; 0 if there is no write."""
        return self.writes[0].at if self.writes else 0

    def first_objects(self) -> list[Manifest]:
        """Return the objects that existed before the first write, as far as the log shows them."""
        found = initial_objects(self.writes)
        return [manifest_of(self.source, write.where, obj) for write, obj in found]


class AuditedInput(Struct, frozen=True):
    """Steps, notes, and the lifecycles of each workload's pods (sorted by start)."""

    steps: tuple[ScriptedStep, ...] = ()
    lifecycles: Mapping[WorkloadRef, Sequence[RecordedLifecycle]] = msgspec.field(
        default_factory=dict
    )
    notes: tuple[str, ...] = ()


NO_INPUT: Final = AuditedInput()


def read_audited(source: str, data: bytes) -> AuditLog:
    """Return the audit log `data`; `source` names it in messages. Raises InputError."""
    return AuditLog(source, *read_audit_log(source, data, has_workloads=True))


def audited_input(
    log: AuditLog,
    initial: Sequence[Manifest],
    start: Instant,
    inventory: Inventory,
    *,
    runs_cron_jobs: bool = False,
) -> AuditedInput:
    """Return steps that repeat the users' actions in `log` after `start`.

    `initial` are the objects of the cluster at `start`. `inventory` contains the objects of the
    cluster; this function adds the objects that the steps create. `runs_cron_jobs` means that the
    simulation runs CronJobs. If `runs_cron_jobs` is False, the steps also create the Jobs that
    CronJobs created in the log. Raises InputError.
    """
    later = [one for one in log.writes if one.at > start or start == log.start]
    if log.writes and not later:
        raise InputError(log.source, "its last write is before the dump was taken")
    reader = _Reader(log.source, start, inventory, runs_cron_jobs)
    reader.cluster.load(Snapshot(log.source, tuple(initial), start))
    known = {(one.kind.kind, one.ref.namespace, one.ref.name) for one in initial}
    named = with_generated_names(later, known)
    steps = tuple(step for write in named for step in reader.steps(write))
    notes = reader.notes(len(log.writes) - len(later), has_steps=bool(steps))
    return AuditedInput(steps, reader.lifecycles(), (*log.notes, *notes))


@dataclass(slots=True)
class _Reader:
    """Applies the writes of a log to a cluster, and turns the writes of users into steps."""

    source: str
    start: Instant
    inventory: Inventory
    runs_cron_jobs: bool
    cluster: RecordedCluster = field(init=False)
    _left_out: int = 0
    _moved: int = 0
    _kinds: set[str] = field(default_factory=set)
    _unrecorded: set[str] = field(default_factory=set)
    _started: dict[tuple[str, str], Instant] = field(default_factory=dict)
    _ended: dict[tuple[str, str], Instant] = field(default_factory=dict)
    _workloads: dict[tuple[str, str], WorkloadRef] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cluster = RecordedCluster(self.source, "add a dump that contains it to cluster.files")

    def steps(self, write: AuditedWrite) -> Iterator[ScriptedStep]:
        """Yield the steps of `write`. Raises InputError."""
        if write.subresource == SCALE:
            write = _scaling(write)
        self._kinds.add(write.kind.kind)
        names = [(one["metadata"].get("namespace", ""), one["metadata"]["name"])
                 for one in write.deleted] or [(write.namespace, write.name)]  # fmt: skip
        before = {key: self.cluster.find(write.kind, *key) for key in names}
        changes = [one for one in self.cluster.apply(write)
                   if isinstance(one, ObjectChanged | ObjectDeleted)]  # fmt: skip
        for key in dict.fromkeys(_key(one.object) for one in changes):
            old, new = before.get(key), self.cluster.find(write.kind, *key)
            if write.kind is POD and new is not None:
                self._note_lifecycle(key, write.at)
            if self._is_left_out(write, new or old):
                self._left_out += 1
                continue
            yield from self._step(write, key, old, new)

    def _step(
        self, write: AuditedWrite, key: tuple[str, str], old: Json | None, new: Json | None
    ) -> Iterator[ScriptedStep]:
        after, title = write.at - self.start, f"{write.kind.kind} {'/'.join(filter(None, key))}"
        ref = ObjectRef(reference_kind(write.kind), *key)
        if new is None or new["metadata"].get("deletionTimestamp"):
            is_first = old is not None and not old["metadata"].get("deletionTimestamp")
            if is_first and self.inventory.get(write.kind, *key) is not None:
                yield ScriptedStep(after, (commands.delete(ref),), write.where, title)
            return
        if old is None and self.inventory.get(write.kind, *key) is None:
            made = manifest_of(self.source, write.where, _desired(write.kind, new, write))
            self.inventory.add(made)
            yield replace(ScriptedStep.creating(after, made), source=write.where)
            return
        earlier = {} if old is None else _desired(write.kind, old, write)
        change = merge_patch_between(earlier, _desired(write.kind, new, write))
        if patches := commands.patch(ref, change):
            step = ScriptedStep(after, tuple(patches), write.where, title)
            if write.kind is NODE and "taints" in (change.get("spec") or {}):
                taints = _TaintChange.between(_taints(earlier), _taints(new))
                patch = partial(_with_taints, ref, change, taints)
                step = replace(step, commands_for=patch, reads_nodes=True)
            yield step

    # --- what is left out -------------------------------------------------------------------

    def _is_left_out(self, write: AuditedWrite, obj: Json | None) -> bool:
        """Return whether to leave out `write` to `obj` because the simulation makes such writes."""
        kind, owner = write.kind, _controller(obj)
        if kind is NODE:
            return False
        if kind.kind in _NOT_FOLLOWED or write.subresource in ("binding", "status"):
            return True
        if owner is not None and self._is_known(obj, owner):
            self._note_owned(write, owner)
            return True
        if not _is_creation(write) and _is_deciding(write.user):
            return True
        return owner is None and self._is_controllers(write, obj)

    def _is_controllers(self, write: AuditedWrite, obj: Json | None) -> bool:
        """Return whether `write` is left out, because the simulation's controllers make it.

        `obj` is the written object; it must not have an owner. The result is True if `obj` is a
        provisioned volume, or if a controller made the write. There are three exceptions. The first
        is a write to the subresource `scale`. The second is a write of a claim by the StatefulSet
        controller, if the StatefulSet is unknown. The third is the creation of a pod, because no
        simulated controller creates a pod without an owner.
        """
        if write.kind is POD and _is_creation(write):
            return False
        if write.kind is PERSISTENT_VOLUME_CLAIM and write.user == _STATEFUL_SETS:
            return self._is_claim_of_known(write)
        annotations = (obj or {}).get("metadata", {}).get("annotations") or {}
        is_scaling = write.subresource == SCALE
        return _PROVISIONED in annotations or (write.user in _CONTROLLERS and not is_scaling)

    def _is_known(self, obj: Json | None, owner: Json) -> bool:
        kind = find_kind(owner["kind"])
        if kind is None or owner["kind"] not in _CONTROLLING or obj is None:
            return False
        if kind is CRON_JOB and not self.runs_cron_jobs:
            return False
        namespace = obj["metadata"].get("namespace", "") if kind.namespaced else ""
        return self.cluster.find(kind, namespace, owner["name"]) is not None

    def _is_claim_of_known(self, write: AuditedWrite) -> bool:
        """Return whether a StatefulSet of the cluster creates the claim that `write` writes.

        Such claims are named `TEMPLATE-SET-N`: claim template, StatefulSet, ordinal.
        """
        parts = _ORDINAL.sub("", write.name).split("-")
        owners = ("-".join(parts[at:]) for at in range(1, len(parts)))
        return any(
            self.cluster.find(STATEFUL_SET, write.namespace, owner) is not None for owner in owners
        )

    def _note_owned(self, write: AuditedWrite, owner: Json) -> None:
        is_removal = write.verb in ("delete", "deletecollection") or write.subresource == "eviction"
        is_users = write.user not in _CONTROLLERS and not _is_deciding(write.user)
        if write.kind is POD and is_removal and is_users:
            self._moved += 1
        elif write.kind is not POD and not is_removal:
            self._unrecorded.add(owner["kind"])

    def notes(self, earlier: int, *, has_steps: bool) -> Iterator[str]:
        """Yield notes about writes that are left out, and about kinds without logged writes.

        `earlier` is the number of writes before the dump. `has_steps` is set if the simulation
        repeats any write of the log.
        """
        if earlier:
            yield (
                f"{self.source}: {earlier:,} writes before the dump are skipped, because the dump "
                "contains their results."
            )
        if self._left_out:
            yield (
                f"{self.source}: {self._left_out:,} writes of controllers, schedulers and kubelets "
                "are left out, because the simulated ones decide instead."
            )
        if not has_steps:
            yield (
                f"{self.source}: no write of the log is repeated. The simulation shows only what "
                "the controllers do with the objects at its start. Add a dump of the cluster to "
                "cluster.files, or record the writes to pods and workloads."
            )
        if self._moved:
            yield (
                f"{self.source}: deletions and evictions of pods that controllers replace are left "
                f"out ({self._moved:,}). To repeat them, add an event such as drain."
            )
        for kind in sorted(self._unrecorded - self._kinds):
            yield (
                f"{self.source}: the log records no write of a {kind}, so changes of this kind are "
                "missing. Record them at level Request."
            )
        if unfollowed := self.cluster.unfollowed:
            yield (
                f"{self.source}: left out: {counted(len(unfollowed), 'write')} to unknown objects "
                f"or with an unknown effect, such as {unfollowed[0]}."
            )

    # --- lifecycles -------------------------------------------------------------------------

    def _note_lifecycle(self, key: tuple[str, str], at: Instant) -> None:
        value = self.cluster.find(POD, *key) or {}
        phase = (value.get("status") or {}).get("phase", "")
        if phase in ("Running", "Succeeded", "Failed"):
            self._started.setdefault(key, max(at, self.start))
        if phase in ("Succeeded", "Failed"):
            self._ended.setdefault(key, at)
        if key not in self._workloads:
            pod: Pod = manifest_of(self.source, "", value).pod
            is_known = self._is_known(value, _controller(value) or {"kind": "", "name": ""})
            self._workloads[key] = workload_of(pod) if is_known else WorkloadRef(POD.kind, *key)

    def lifecycles(self) -> dict[WorkloadRef, list[RecordedLifecycle]]:
        """Return {workload: lifecycles of its pods} for each workload with a completed pod.

        The lifecycles are ordered by start.
        """
        found: dict[WorkloadRef, list[RecordedLifecycle]] = defaultdict(list)
        completing = {self._workloads[key] for key in self._ended}
        for key, started in sorted(self._started.items(), key=lambda item: (item[1], item[0])):
            workload, ended = self._workloads[key], self._ended.get(key)
            if workload in completing:
                until = None if ended is None else ended - self.start
                found[workload].append(RecordedLifecycle(started - self.start, until))
        return dict(found)


def _key(obj: Any) -> tuple[str, str]:
    return obj.metadata.namespace, obj.metadata.name


def _is_creation(write: AuditedWrite) -> bool:
    return write.verb == "create" and not write.subresource


def _is_deciding(user: str) -> bool:
    """Return whether `user` is a scheduler, a kubelet, or a controller that removes pods."""
    return user in _SIMULATED_USERS or user.startswith(_KUBELET)


def _controller(obj: Json | None) -> Json | None:
    """Return the owner reference of `obj` to its controller; None if it has no controller."""
    for one in ((obj or {}).get("metadata") or {}).get("ownerReferences") or ():
        if one.get("controller"):
            reference: Json = one
            return reference
    return None


def _scaling(write: AuditedWrite) -> AuditedWrite:
    """Return `write`, a write to the subresource `scale`, as a patch of `spec.replicas`."""
    match write.request:
        case {"spec": {"replicas": int(replicas)}}:
            request: Any = {"spec": {"replicas": replicas}}
        case [*operations]:
            request = operations
        case _:
            request = None
    return replace(write, verb="patch", request=request, response=None)


def _is_repeated(taint: str) -> bool:
    """Return whether the scenario repeats the recorded taints with the key `taint`.

    The scenario repeats the taints that no simulated controller sets: the lasting taints
    (`is_lasting_taint`), the taints of agents, and the taint out-of-service, which users set on
    failed nodes.
    """
    return is_lasting_taint(taint) or awaits_agent(taint) or taint == OUT_OF_SERVICE


class _TaintChange(Struct, frozen=True):
    """The taints that a write sets, and the taints that it removes, by (key, effect)."""

    changed: Mapping[tuple[str, str], Json]
    removed: frozenset[tuple[str, str]]

    @classmethod
    def between(cls, before: Iterable[Json], after: Iterable[Json]) -> _TaintChange:
        """Return the change from the taints `before` to the taints `after`.

        Taints that controllers manage are left out (`_is_repeated`).
        """
        old, new = (
            {_identity(one): one for one in taints if _is_repeated(one.get("key", ""))}
            for taints in (before, after)
        )
        changed = {key: one for key, one in new.items() if old.get(key) != one}
        return cls(changed, frozenset(old.keys() - new.keys()))

    def applied_to(self, present: Sequence[Json]) -> list[Json]:
        """Apply this change to the taints `present`; return the resulting taints as a new list."""
        kept = {_identity(one): one for one in present if _identity(one) not in self.removed}
        return [*({**kept, **self.changed}).values()]


def _identity(taint: Json) -> tuple[str, str]:
    return taint.get("key", ""), taint.get("effect", "")


def _taints(node: Json) -> list[Json]:
    return (node.get("spec") or {}).get("taints") or []


def _with_taints(
    ref: ObjectRef, change: Json, taints: _TaintChange, nodes: Sequence[Json]
) -> tuple[Command, ...]:
    """Return the commands that make `change` to the node `ref`; `nodes` are the present nodes.

    The taints in `change` are ignored. Instead, the commands make the changes in `taints` to the
    present taints of the node, so the taints that the simulation has set are kept. If `nodes` lacks
    the node, the commands have no effect.
    """
    present = next((one for one in nodes if one["metadata"]["name"] == ref.name), {})
    spec = {**change["spec"], "taints": taints.applied_to(_taints(present)) or None}
    return tuple(commands.patch(ref, {**change, "spec": spec}))


def _desired(kind: Kind, obj: Json, write: AuditedWrite) -> Json:
    """Return `obj` without the fields that the cluster wrote.

    Of the status, only the capacity and the allocatable amounts of a node are kept.
    """
    meta = {key: value for key, value in obj["metadata"].items() if key not in _SYSTEM}
    kept = {key: value for key, value in obj.items() if key != "status"} | {"metadata": meta}
    spec = obj.get("spec") or {}
    if kind is POD and not _is_creation(write):
        kept["spec"] = {key: value for key, value in spec.items() if key != "nodeName"}
    if kind is NODE:
        taints = [one for one in spec.get("taints") or () if _is_repeated(one.get("key", ""))]
        others = {key: value for key, value in spec.items() if key != "taints"}
        kept["spec"] = {**others, **({"taints": taints} if taints else {})}
        status = obj.get("status") or {}
        kept["status"] = {key: status[key] for key in ("capacity", "allocatable") if key in status}
    return kept
