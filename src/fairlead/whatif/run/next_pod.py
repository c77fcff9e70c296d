"""Tries the next pod of each workload: would the API server admit it at the end of a run?

A change can alter which pods the API server admits, without an effect on any existing pod. The
effect appears only when a controller creates the next pod, for example after an eviction. Therefore
a run with such a change ends with a trial (a dry run) for each workload that the change concerns.
Runs with other changes make no trials.

The trial creates one more pod. If this pod is refused, a second trial creates the replacement of a
pod that has ended: a quota may have room for the replacement, because the quota does not count the
ended pod.

Trials are made for workloads of built-in kinds. If a Deployment has ReplicaSets with pods, the
trials are made for these ReplicaSets. If it has none, a trial is made for the Deployment itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from msgspec import Struct, json

from fairlead.api.codec import decode_as
from fairlead.api.json import Json, mapping
from fairlead.api.objects import OwnerReference, Pod
from fairlead.api.pods.facts import is_terminal
from fairlead.apiserver.admission.quota.resource_quota import QuotaExcess
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    RESOURCE_QUOTA,
    STATEFUL_SET,
    Kind,
)
from fairlead.apiserver.registry.admission_control import has_dynamic_admission
from fairlead.engine.core.command import CreateObject, IssuedCommand
from fairlead.engine.core.issuer import controller_account
from fairlead.engine.workloads.pod_control.pod_template import pod_manifest
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.run_outcome import RefusedWorkload
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.run.tried_workload import TriedWorkloads
from fairlead.worlds.component_identity import user_of
from fairlead.worlds.simulation.world import SimulatedWorld

# Owners whose pods belong to objects that they create.
_CREATED: Final = {DEPLOYMENT: REPLICA_SET, CRON_JOB: JOB}
_NAMED_POD: Final = re.compile(r'[Pp]ods? "[^"]*" is (?:forbidden|invalid): ')
_Pods = Callable[[Collection[WorkloadRef]], Iterable[tuple[WorkloadRef, str, Pod, str]]]


def refused_workloads(
    world: SimulatedWorld, tried: TriedWorkloads, jobs: Collection[WorkloadRef], pods: _Pods
) -> tuple[RefusedWorkload, ...]:
    """Return the workloads of `tried` whose next pods would be refused now, sorted.

    `jobs` are the Jobs that have not finished; other Jobs create no pods. `pods` returns (workload,
    uid, pod, node) for each existing pod of the given workloads. The trials do not change the
    store.
    """
    owners = [one for one in _owners(world, tried) if one.kind is not JOB or one.job in jobs]
    limited = {one["metadata"]["namespace"] for one in world.store.list(RESOURCE_QUOTA)}
    counted = {one.workload for one in owners if one.workload.namespace in limited}
    present = _present_pods(pods(counted))
    found: dict[WorkloadRef, RefusedWorkload] = {}
    for one in owners:
        refused = _refused_workload(world, one, present.get(one.workload))
        known = found.get(one.workload)
        if refused and (
            known is None or (refused.replacements_refused > known.replacements_refused)
        ):
            found[one.workload] = refused
    return tuple(found[workload] for workload in sorted(found))


def _refused_workload(
    world: SimulatedWorld, owner: _Owner, present: Json | None
) -> RefusedWorkload | None:
    """Return the refusal of the next pod of `owner`; None if the pod is admitted.

    `present` is an existing pod of the same workload, None if there is none.
    """
    message = refusal_of(world, owner.manifest, None)
    if not message:
        return None
    replacement = message if present is None else refusal_of(world, owner.manifest, present)
    if replacement and _quota_in(replacement) != _quota_in(message):
        message = (
            replacement  # The quota in `message` has room for the replacement; this quota has not.
        )
    return RefusedWorkload(owner.workload, message, replacements_refused=bool(replacement))


def _quota_in(message: str) -> str:
    """Return the name of the quota that `message` says is exceeded; "" for other messages."""
    excess = QuotaExcess.read(message)
    return "" if excess is None else excess.quota


class _Owner(Struct, frozen=True):
    """An object that creates pods: its kind, its workload and the manifest of its next pod."""

    kind: Kind
    workload: WorkloadRef
    manifest: Json

    @property
    def job(self) -> WorkloadRef:
        """The owner as a Job, even if its workload is a CronJob."""
        meta = self.manifest["metadata"]
        return _ref(JOB, meta["namespace"], meta["ownerReferences"][0]["name"])


def _owners(world: SimulatedWorld, tried: TriedWorkloads) -> Iterator[_Owner]:
    """Yield the owners that belong to the workloads `tried`."""
    replica_sets = [_owner(REPLICA_SET, obj) for obj in _objects(world, REPLICA_SET, tried)]
    served = {one.workload for one in replica_sets}
    deployments = (
        _owner(DEPLOYMENT, obj)
        for obj in _objects(world, DEPLOYMENT, tried)
        if _ref_of(DEPLOYMENT, obj) not in served
    )
    cron_jobs = (
        _owner(CRON_JOB, obj)
        for obj in _objects(world, CRON_JOB, tried)
        if not obj["spec"].get("suspend")
    )
    others = (
        _owner(kind, obj)
        for kind in (STATEFUL_SET, DAEMON_SET, REPLICATION_CONTROLLER, JOB)
        for obj in _objects(world, kind, tried)
    )
    found = chain(replica_sets, deployments, others, cron_jobs)
    yield from (one for one in found if one.workload in tried)


def _objects(world: SimulatedWorld, kind: Kind, tried: TriedWorkloads) -> Iterator[Json]:
    """Yield the objects of `kind` in the namespaces of `tried`.

    Objects that are being deleted, and those with 0 replicas, are left out: they create no pods.
    """
    storage = world.store.storage
    namespaces = [None] if tried.scope is None else sorted(tried.scope)
    for namespace in namespaces:
        for obj in storage.items(kind, namespace):
            own = storage.find(NAMESPACE, "", obj["metadata"].get("namespace", ""))
            is_ending = own is not None and own["metadata"].get("deletionTimestamp")
            wants_pods = mapping(obj, "spec").get("replicas", 1) != 0
            if wants_pods and not (is_ending or obj["metadata"].get("deletionTimestamp")):
                yield obj


def _owner(kind: Kind, obj: Json) -> _Owner:
    """Return `obj` as the owner of its next pod."""
    meta = obj["metadata"]
    creator = _CREATED.get(kind, kind)
    owner = OwnerReference(
        api_version=creator.api_version,
        kind=creator.kind,
        name=meta["name"],
        uid=meta.get("uid", ""),
        controller=True,
    )
    of_job = ("jobTemplate", "spec") if kind is CRON_JOB else ()
    manifest = pod_manifest(
        mapping(obj, "spec", *of_job, "template"),
        name=f"{meta['name']}-next",
        namespace=meta.get("namespace", ""),
        owner=owner,
    )
    return _Owner(kind, _workload(kind, obj, manifest), manifest)


def _workload(kind: Kind, obj: Json, manifest: Json) -> WorkloadRef:
    """Return the workload of `manifest`, the next pod of `obj`."""
    controller = _controller(obj["metadata"])
    if kind is REPLICA_SET or (controller and controller.kind != CRON_JOB.kind):
        # The Deployment, or a custom resource such as a Rollout.
        return workload_of(decode_as(Pod, manifest))
    if controller is None:
        return _ref_of(kind, obj)
    return _ref(CRON_JOB, obj["metadata"].get("namespace", ""), controller.name)


def _controller(meta: Json) -> OwnerReference | None:
    """Return the owner reference to the controller of an object with the metadata `meta`."""
    references = meta.get("ownerReferences") or ()
    found = next((one for one in references if one.get("controller")), None)
    return None if found is None else decode_as(OwnerReference, found)


def _ref_of(kind: Kind, obj: Json) -> WorkloadRef:
    return _ref(kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


def _ref(kind: Kind, namespace: str, name: str) -> WorkloadRef:
    return WorkloadRef(kind.kind, namespace, name)


def _present_pods(rows: Iterable[tuple[WorkloadRef, str, Pod, str]]) -> Mapping[WorkloadRef, Json]:
    """Return an existing pod of each workload, with the fields that quotas count."""
    found: dict[WorkloadRef, Json] = {}
    for workload, _, pod, _ in rows:
        if workload not in found and not is_terminal(pod):
            meta = {"name": pod.metadata.name, "namespace": pod.metadata.namespace}
            found[workload] = {"metadata": meta, "spec": json.decode(json.encode(pod.spec))}
    return found


def refusal_of(world: SimulatedWorld, manifest: Json, replaced: Json | None) -> str:
    """Return why the API server refuses the pod `manifest`; "" if it does not refuse the pod.

    The returned text leaves out the name of the pod. `replaced` is an existing pod that ends before
    the new pod is created; None if all existing pods stay.
    """
    user = None
    if has_dynamic_admission(world.store.storage):
        user = user_of(IssuedCommand(CreateObject(manifest), controller_account("")), None)
    write = Write(dry_run=True, user=user, replaced=replaced)
    unchecked = world.admission.unchecked
    before = dict(unchecked.plugins), dict(unchecked.webhooks)
    try:
        world.store.create(manifest, world.now, write=write)
    except ApiError as refused:
        return without_pod_name(refused.message)
    except InputError:  # A policy reads an object of the dump that is malformed.
        return ""
    finally:
        # This dry run is not a request of the run, so it must not count as unchecked.
        unchecked.plugins, unchecked.webhooks = before
    return ""


def without_pod_name(message: str) -> str:
    """Return `message`, a refusal of a pod, without the words that name the pod."""
    return _NAMED_POD.sub("", message, count=1)
