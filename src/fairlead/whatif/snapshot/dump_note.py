"""Notes about a dump for users, for example about missing kinds or another Kubernetes version.

A missing kind is detected by references to it, such as a pod's owner, claims or PriorityClass, or
the annotation of LimitRanger. Every node has a Lease, so Leases are missing if the dump contains
none. Leases matter only for nodes that are not Ready. Nothing refers to budgets and quotas, so
their absence alone proves nothing. A note names absent budgets or quotas in two cases: another kind
is missing as well, or the dump has no Leases and no budgets.

The version of a cluster is the version of its control plane's static pods, or else of its newest
kubelet.

upstream: pkg/features/kube_features.go, and CHANGELOG/CHANGELOG-1.32.md, 1.33 for the defaults
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from fairlead.api.json import Json, mapping
from fairlead.api.nodes.kubelet_behaviour import SIMULATED_RUNTIME
from fairlead.api.nodes.readiness import READY, TRUE
from fairlead.api.objects import (
    Node,
    Pod,
)
from fairlead.api.pods.facts import controller_of, is_terminal, is_terminating
from fairlead.api.pods.volumes import all_claims
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import (
    DAEMON_SET,
    DEPLOYMENT,
    DEVICE_CLASS,
    JOB,
    LEASE,
    LIMIT_RANGE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    PRIORITY_CLASS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_QUOTA,
    RESOURCE_SLICE,
    STATEFUL_SET,
    STORAGE_CLASS,
    Kind,
)
from fairlead.apiserver.validation.scheduling import SYSTEM_CLASSES
from fairlead.whatif.snapshot.manifest import Manifest, ReplicaManifests, entries_of
from fairlead.whatif.snapshot.manifest_reader import invalid_annotations, unknown_annotations
from fairlead.whatif.snapshot.samples import samples, valid_view, valid_views
from fairlead.whatif.snapshot.served_kind import is_custom, is_served
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.whatif.snapshot.validation.unknown_field import unknown_field_notes

NEWEST: Final = (1, 36)
# (Kubernetes version, a rule that all older versions follow instead), newest version first.
DIFFERENCES: Final[Sequence[tuple[tuple[int, int], str]]] = (
    ((1, 33), "preemption deletes its victims within the scheduling cycle"),
    ((1, 32), "a node is Unknown after 40 s without heartbeats (--node-monitor-grace-period 40s)"),
    ((1, 32), "waiting pods are retried after more kinds of events, even if these cannot help"),
    ((1, 22), "more rules differ; --behave-like applies those of 1.21, 1.19 or 1.16"),
)
_OWNERS: Final = {
    kind.kind: kind for kind in (REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, DAEMON_SET, JOB)
}
# Each kind of workload, with the field of its status that counts the pods.
_COUNTS: Final[dict[Kind, str]] = {
    **dict.fromkeys((DEPLOYMENT, STATEFUL_SET, REPLICA_SET, REPLICATION_CONTROLLER), "replicas"),
    DAEMON_SET: "currentNumberScheduled",
    JOB: "active",
}
_LIMITED: Final = "kubernetes.io/limit-ranger"
_EFFECTS: Final = {
    LEASE: "an outage under way may seem to have begun earlier",
    PRIORITY_CLASS: "new pods cannot name them",
    LIMIT_RANGE: "new workloads get no default requests",
    PERSISTENT_VOLUME_CLAIM: "they are assumed to suit their pods",
    PERSISTENT_VOLUME: "every node is assumed to reach them",
    STORAGE_CLASS: "every node is assumed to reach the volumes of new claims",
    RESOURCE_CLAIM: "devices in use count as free",
    RESOURCE_CLAIM_TEMPLATE: "new pods that need devices stay pending",
    RESOURCE_SLICE: "there are no devices for new pods",
    DEVICE_CLASS: "new pods get no devices",
    POD_DISRUPTION_BUDGET: "nothing limits evictions",
    RESOURCE_QUOTA: "nothing limits new pods",
}
IGNORED_RULES: Final = (
    "DeviceTaintRules have no effect, as in Kubernetes by default; "
    "--feature-gates DRADeviceTaintRules=true turns them on."
)
IGNORED_GROUPS: Final = (
    "PodGroups of scheduling.k8s.io have no effect, as in Kubernetes by default; "
    "--feature-gates GenericWorkload=true,GangScheduling=true turns them on."
)
IGNORED_MAX_UNAVAILABLE: Final = (
    "maxUnavailable of StatefulSets has no effect, as in Kubernetes by default; "
    "--feature-gates MaxUnavailableStatefulSet=true turns it on."
)
_OWNER_EFFECT: Final = "their pods are replaced one for one"
_NAMED_MAX: Final = 3
_FILES_MAX: Final = 10
_SYSTEM: Final = "kube-system"
_OPENSHIFT: Final = "openshift-"
_VIRTUAL_KUBELET: Final = "virtual-kubelet"  # upstream: node/nodeutil/controller.go
_API_SERVER: Final = "kube-apiserver-"
_WORKLOAD_REF: Final = "workloadRef"
_KUEUE: Final = "kueue.x-k8s.io"


_VERSION: Final = re.compile(r"v?(1)\.([0-9]+)")


def dump_notes(snapshot: Snapshot) -> Iterator[str]:
    """Yield sentences that what-ifs and planners show as notes about a dump.

    If all objects are hand-written, only some notes are possible. These notes are about empty
    files, nodes that are starting, pods on missing nodes, and nodes without resources. Notes about
    unknown annotations, fields, kinds, quota scopes and limit types are also possible.
    """
    yield from snapshot.start_notes
    files = snapshot.files
    if len(files) > 1:  # a directory may also contain files that are not a part of the dump
        names = listed(files, _FILES_MAX)
        yield f"The objects of {len(files):,} files are read as one cluster: {names}."
    if snapshot.empty_files:
        yield (
            f"Empty files were skipped: {listed(snapshot.empty_files, _NAMED_MAX)}. kubectl writes "
            "nothing if the cluster lacks a kind, or if you are not allowed to read it."
        )
    objects = samples(snapshot.manifests)
    yield from cluster_notes(snapshot)
    yield from unknown_annotations(objects)
    yield from invalid_annotations(objects)
    yield from unknown_field_notes(objects)
    yield from unknown_kind_notes(objects)
    limits = [one for one in objects if one.kind is LIMIT_RANGE or one.kind is RESOURCE_QUOTA]
    if limits:
        # Imported only when needed, because the rules of quotas take time to import.
        from fairlead.whatif.snapshot.validation.unknown_limit import unknown_limit_notes  # noqa: PLC0415

        yield from unknown_limit_notes(limits)


def cluster_notes(snapshot: Snapshot) -> Iterator[str]:
    """Yield the notes about what the dump lacks, and about its version.

    What-ifs and scenarios show these notes. If all objects are hand-written, only two kinds of
    notes are possible: about pods on missing nodes, and about nodes without resources.
    """
    manifests = snapshot.manifests
    objects = samples(manifests)  # of pods that are alike, only one
    has_uids = any(one.ref.uid for one in objects)  # hand-written objects have none
    if has_uids:
        yield from _missing(objects, snapshot.unreadable)
        yield from _absent_controllers(objects, snapshot.unreadable)
        yield from _deleted_classes(objects)
        yield from _former_gangs(objects)
        if not snapshot.has_all_namespaces:
            yield from _missing_namespaces(objects)
            yield from _missing_pods(objects)
        yield from _other_versions(objects, manifests)
    yield from _without_nodes(manifests)
    yield from _without_allocatable(objects)


def kueue_notes(
    manifests: Iterable[Manifest], concerned: Collection[tuple[str, str, str]] | None = None
) -> Iterator[str]:
    """Yield a note about the objects of the dump `manifests` that Kueue has not admitted.

    `concerned` are the pods and controllers that the answer is about, each as (kind, namespace,
    name). There is no note if Kueue manages none of them. If `concerned` is None, the answer is
    about the whole cluster.
    """
    objects = samples(manifests)
    if not any(one.kind is JOB or one.kind.group == _KUEUE for one in objects):
        return
    # Imported only if it is needed.
    from fairlead.whatif.snapshot.kueue import manages_any, waiting_notes  # noqa: PLC0415

    if concerned is None or manages_any(manifests, concerned):
        yield from waiting_notes(objects)


def lacks_pods(manifests: Iterable[Manifest]) -> bool:
    """Return whether the dump `manifests` seems to lack pods of the cluster."""
    return next(_missing_pods(tuple(manifests)), None) is not None


def unknown_kind_notes(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note for each unknown kind in an API group that Kubernetes itself defines."""
    found: dict[Kind, list[str]] = {}
    for one in manifests:
        if one.view is None and not is_served(one.kind):
            found.setdefault(one.kind, []).append(one.title)
    for kind, titles in sorted(found.items(), key=lambda item: (item[0].api_version, item[0].kind)):
        more = f" and {len(titles) - 1:,} more have" if len(titles) > 1 else " has"
        yield (
            f"{kind.api_version} has no kind {kind.kind} that Kubernetes serves by default, so "
            f"{min(titles)}{more} no effect."
        )


def _without_nodes(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note if pods are bound to nodes that are not in the dump."""
    # upstream: pkg/controller/podgc/gc_controller.go: gcOrphaned
    nodes = {
        one.ref.name
        for one in entries_of(manifests)
        if isinstance(one, Manifest) and one.kind is NODE
    }
    pods = (one for one in entries_of(manifests) if one.kind is POD)
    bound = [
        f"{key} ({node})"
        for pod in pods
        if not nodes.issuperset(names := _nodes_of(pod))
        for key, node in zip(_keys_of(pod), names, strict=True)
        if node and node not in nodes
    ]
    if bound:
        are, them = f"{len(bound):,} pods are bound to nodes", "them"
        if len(bound) == 1:
            are, them = "1 pod is bound to a node", "it"
        yield (
            f"{are} that the dump does not have, so pod garbage collection deletes {them}: "
            f"{listed(sorted(bound), _NAMED_MAX)}."
        )


def _without_allocatable(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note if nodes do not state their resources."""
    found = [
        one.ref.name
        for one in manifests
        if one.kind is NODE and not one.node.status.allocatable and not one.node.status.capacity
    ]
    if found:
        yield (
            f"No pod fits on {listed(sorted(found), _NAMED_MAX)}, because status.allocatable is "
            "missing there."
        )


def _nodes_of(entry: Manifest | ReplicaManifests) -> Sequence[str]:
    """Return the names of the nodes of the pods in `entry`; "" for a pod without a node."""
    if isinstance(entry, ReplicaManifests):
        return entry.replicas.nodes
    view = entry.view
    if isinstance(view, Pod):
        return (view.spec.node_name,)
    return (str(_at(entry, "spec").get("nodeName") or ""),)


def _keys_of(entry: Manifest | ReplicaManifests) -> Sequence[str]:
    """Return the keys of the pods in `entry`."""
    return entry.replicas.keys if isinstance(entry, ReplicaManifests) else (entry.ref.key,)


def _missing(manifests: Sequence[Manifest], unreadable: Iterable[str]) -> Iterator[str]:
    """Yield a note about missing kinds. The `unreadable` resources have other notes."""
    known = {one.kind.resource for one in manifests} | set(unreadable)
    wanted = (*_referred(manifests), *_kinds_of_storage(manifests))
    found = {one: None for one in wanted if one.resource not in known}
    has_leases = LEASE.resource in known
    if not has_leases and any(one.kind is NODE and _is_out(one) for one in manifests):
        found = {LEASE: None, **found}
    has_budgets = POD_DISRUPTION_BUDGET.resource in known
    if found or not (has_leases or has_budgets):
        untraceable = (POD_DISRUPTION_BUDGET, RESOURCE_QUOTA)
        found.update({one: None for one in untraceable if one.resource not in known})
    if found:
        words = [f"{kind.plural} ({_EFFECTS.get(kind, _OWNER_EFFECT)})" for kind in found]
        others, last = words[:-1], words[-1]
        yield f"The dump has no {', '.join(others)}{' and ' if others else ''}{last}."


def _absent_controllers(manifests: Sequence[Manifest], unreadable: Iterable[str]) -> Iterator[str]:
    """Yield a note if the dump lacks controllers of pods, but has other objects of their kind.

    The controllers may have been deleted, or their namespace may not have been read. If the dump
    lacks the whole kind, `_missing` has a note.

    upstream: pkg/controller/garbagecollector/garbagecollector.go: attemptToDeleteItem
    """
    known = {one.kind.resource for one in manifests}.difference(unreadable)
    names = {(one.kind, one.ref.namespace, one.ref.name) for one in manifests}
    absent = set()
    for pod in valid_views(Pod, POD, manifests):
        owner = controller_of(pod.metadata)
        if owner is None or is_custom(owner.api_version) or is_terminal(pod):
            continue
        kind, namespace = _OWNERS.get(owner.kind), pod.metadata.namespace
        if kind is None or kind.resource not in known or is_terminating(pod):
            continue
        if (kind, namespace, owner.name) not in names:
            absent.add(f"{owner.kind} {namespace}/{owner.name}")
    if absent:
        yield (
            f"The dump lacks controllers of pods ({listed(sorted(absent), _NAMED_MAX)}). An equal "
            "pod replaces each of their deleted pods. If the cluster lacks these controllers too, "
            "garbage collection deletes their pods."
        )


def _deleted_classes(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Yield a note if pods name PriorityClasses that were deleted.

    An API server always has the PriorityClasses of the system. So a dump that contains these
    classes contains all PriorityClasses of the cluster.

    upstream: pkg/registry/scheduling/rest/storage_scheduling.go: AddSystemPriorityClasses;
    plugin/pkg/admission/priority/admission.go: admitPod
    """
    known = {one.ref.name for one in manifests if one.kind is PRIORITY_CLASS}
    if known.isdisjoint(SYSTEM_CLASSES):
        return
    pods = valid_views(Pod, POD, manifests)
    named = {pod.spec.priority_class_name for pod in pods if not is_terminal(pod)}
    deleted = sorted(named - known - {""})
    if deleted:
        which, them = ("PriorityClass", "it") if len(deleted) == 1 else ("PriorityClasses", "them")
        was = "was" if len(deleted) == 1 else "were"
        yield (
            f"{which} {listed(deleted, _NAMED_MAX)} {was} deleted, but pods name {them}. In this "
            "answer, their replacements keep their priority; an API server would refuse the "
            "replacements."
        )


def _missing_namespaces(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Yield a note if kubectl was probably called without -A, so that the dump lacks pods.

    kubectl was probably called without -A if the dump has pods, but no objects of the namespace
    kube-system. Two kinds of clusters have no pods in this namespace, so they get no note: clusters
    of simulated nodes, and OpenShift. The system pods of OpenShift are in namespaces such as
    openshift-dns.
    """
    namespaces = sorted({one.ref.namespace for one in manifests if one.kind is POD})
    if not namespaces or any(one.ref.namespace == _SYSTEM for one in manifests):
        return
    if len(namespaces) > 1 and any(one.startswith(_OPENSHIFT) for one in namespaces):
        return
    nodes = valid_views(Node, NODE, manifests)
    runtimes = {one.status.node_info.container_runtime_version for one in nodes}
    if runtimes == {SIMULATED_RUNTIME}:
        return
    found = f"All pods of the dump are in the namespace {namespaces[0]}"
    if len(namespaces) > 1:
        found = f"The dump has no pods of the namespace {_SYSTEM}"
    yield (
        f"{found}, so nodes may have less room than in this answer. kubectl get -A reads all "
        "namespaces."
    )


def _missing_pods(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Yield a note if the dump `manifests` seems to lack pods of the cluster.

    `kubectl get` may have read no pods, or only the pods of one namespace. A real cluster always
    has pods. The status of a workload counts its pods. If this status counts pods, but the dump has
    no pod in the workload's namespace, the dump lacks these pods. A simulation then creates new
    pods, perhaps on other nodes than in the cluster.

    There is no note if no object has a uid. Such a dump may be a file of hand-written manifests,
    which need not include pods.
    """
    if not any(one.ref.uid for one in manifests):
        return
    namespaces = {one.ref.namespace for one in manifests if one.kind is POD}
    counted = [one.title for one in manifests if _counts_pods(one, namespaces)]
    read = "kubectl get -A reads the pods of all namespaces."
    if counted:
        others = len(counted) - 1
        more = f" and {others:,} more workload{'s' if others > 1 else ''}" if others else ""
        its = "their" if others else "its"
        yield (
            f"The dump has no pods of {min(counted)}{more}, although {its} status "
            "counts pods. In this answer, new pods take their place, perhaps on other nodes. "
            f"{read}"
        )
    elif not namespaces and _has_real_nodes(manifests):
        yield f"The dump has no pods, so this answer leaves out the pods of the cluster. {read}"


def _counts_pods(manifest: Manifest, namespaces: set[str]) -> bool:
    """Return whether the status of a workload counts pods that the dump lacks.

    The dump lacks the pods if it has no pod in the workload's namespace. `namespaces` are the
    namespaces that have pods in the dump. Return False for a workload with an owner, such as the
    ReplicaSet of a Deployment.
    """
    field = _COUNTS.get(manifest.kind)
    if field is None or manifest.ref.namespace in namespaces:
        return False
    owners = mapping(manifest.value, "metadata").get("ownerReferences") or ()
    return not owners and bool(mapping(manifest.value, "status").get(field))


def _has_real_nodes(manifests: Iterable[Manifest]) -> bool:
    """Return whether any node is real: not one of the simulated nodes of `fairlead up`."""
    nodes = (one.node for one in manifests if one.kind is NODE)
    runtimes = (one.status.node_info.container_runtime_version for one in nodes)
    return any(one != SIMULATED_RUNTIME for one in runtimes)


def _former_gangs(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note if pods or pod templates have workloadRef, the gang field of Kubernetes 1.35.

    upstream: api/core/v1/types.go: WorkloadReference (1.35); 1.36 has PodSchedulingGroup instead
    """
    found = sorted(one.title for one in manifests if _has_workload_ref(one))
    if found:
        yield (
            f"spec.workloadRef has no effect ({listed(found, _NAMED_MAX)}): it belongs to the gang "
            "scheduling of Kubernetes 1.35, which PodGroups and spec.schedulingGroup replace in "
            "1.36. Pods with this field are scheduled one by one in this answer."
        )


def _has_workload_ref(manifest: Manifest) -> bool:
    if manifest.kind is POD:
        content = manifest.content
        if not isinstance(content, dict) and _WORKLOAD_REF.encode() not in bytes(content.text):
            return False  # almost always, so almost no text is decoded
        return _WORKLOAD_REF in _at(manifest, "spec")
    if manifest.kind is NODE:
        return False  # has no pod template, and its text need not be decoded
    return _WORKLOAD_REF in mapping(manifest.pod_template, "spec")


def _is_out(node: Manifest) -> bool:
    """Return whether `node` is not Ready; only then is the heartbeat in its Lease needed."""
    conditions = node.node.status.conditions
    return any(one.type == READY and one.status != TRUE for one in conditions)


def _referred(manifests: Iterable[Manifest]) -> Iterator[Kind]:
    """Yield the kinds to which pods refer, with repetitions."""
    has_claims = False
    for manifest in manifests:
        pod = valid_view(Pod, POD, manifest)
        if pod is None:
            continue
        owner = controller_of(pod.metadata)
        if owner is not None and owner.kind in _OWNERS and not is_custom(owner.api_version):
            yield _OWNERS[owner.kind]
        name = pod.spec.priority_class_name
        if name and not name.startswith("system-"):
            yield PRIORITY_CLASS
        if _LIMITED in pod.metadata.annotations:
            yield LIMIT_RANGE
        if not has_claims and any(True for _ in all_claims(pod)):
            has_claims = True
            yield PERSISTENT_VOLUME_CLAIM
        if any(volume.ephemeral is not None for volume in pod.spec.volumes):
            yield STORAGE_CLASS
        yield from _kinds_of_devices(pod)


def _kinds_of_devices(pod: Pod) -> Iterator[Kind]:
    """Yield the kinds to which the resource claims of `pod` refer."""
    claims = pod.spec.resource_claims
    if claims:
        # A claim from a template is created after its pod, and before the pod is bound.
        if pod.spec.node_name or any(one.resource_claim_name for one in claims):
            yield RESOURCE_CLAIM
        if any(one.resource_claim_template_name for one in claims):
            yield RESOURCE_CLAIM_TEMPLATE
        yield from (RESOURCE_SLICE, DEVICE_CLASS)


def _kinds_of_storage(manifests: Sequence[Manifest]) -> Iterator[Kind]:
    """Yield PersistentVolume if claims name one, StorageClass if a StatefulSet makes claims."""
    for kind, field, wanted in (
        (PERSISTENT_VOLUME_CLAIM, "volumeName", PERSISTENT_VOLUME),
        (STATEFUL_SET, "volumeClaimTemplates", STORAGE_CLASS),
    ):
        if any(_at(one, "spec").get(field) for one in manifests if one.kind is kind):
            yield wanted


def _other_versions(some: Sequence[Manifest], manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note if the cluster in `manifests` runs any version other than NEWEST.

    `some` is the result of `samples(manifests)`. `some` contains all nodes. Nodes of a virtual
    kubelet do not count: they state the version of a program, not of a kubelet.
    """
    texts = {
        one.status.node_info.kubelet_version
        for one in valid_views(Node, NODE, some)
        if one.metadata.labels.get("type") != _VIRTUAL_KUBELET
    }
    kubelets = {version for text in texts if (version := _version(text))}
    server = max(_control_plane(manifests), default=max(kubelets, default=NEWEST))
    others = sorted(kubelets - {server})
    if server == NEWEST and not others:
        return
    some_of = "some of its nodes" if server in kubelets else "its nodes"
    nodes = f", {some_of} {', '.join(map(_text, others))}" if others else ""
    rules = [text for before, text in DIFFERENCES if server < before]
    differing = f" In Kubernetes {_text(server)}, {'; '.join(rules)}." if rules else ""
    yield (
        f"The cluster runs Kubernetes {_text(server)}{nodes}; answers follow {_text(NEWEST)}."
        f"{differing}"
    )


def _control_plane(manifests: Iterable[Manifest]) -> Iterator[tuple[int, int]]:
    """Yield the versions in the image tags of the static pods of kube-apiserver."""
    for one in map(_api_server, entries_of(manifests)):
        if one is not None:
            for container in _at(one, "spec").get("containers") or ():
                version = _version(str(container.get("image", "")).rpartition(":")[2])
                if version:
                    yield version


def _api_server(entry: Manifest | ReplicaManifests) -> Manifest | None:
    """Return the static pod of kube-apiserver in `entry`; None if `entry` has no such pod.

    `entry` is one object or a set of replicas. If several pods match, the first is returned.
    """
    if entry.kind is not POD:
        return None
    if isinstance(entry, ReplicaManifests):
        if entry.replicas.namespace != _SYSTEM:
            return None
        names = enumerate(entry.replicas.names)
        return next((entry.at(at) for at, name in names if name.startswith(_API_SERVER)), None)
    is_api_server = entry.ref.namespace == _SYSTEM and entry.ref.name.startswith(_API_SERVER)
    return entry if is_api_server else None


def _at(manifest: Manifest, *path: str) -> Json:
    """Return the mapping at the given path in `manifest`; {} if there is none."""
    return mapping(manifest.value, *path)


def _version(text: object) -> tuple[int, int] | None:
    matched = _VERSION.match(text) if isinstance(text, str) else None
    return None if matched is None else (int(matched[1]), int(matched[2]))


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
