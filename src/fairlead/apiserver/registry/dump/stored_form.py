"""StoredForm: decides from a typed view whether loading would leave the object unchanged.

Loading a dump (`snapshot_load`) sets defaults in JSON values, and validates these values. The API
server from which a dump comes has already done this for almost every object. For such an object,
the view that is decoded from its text equals the view that loading would produce. Therefore, no
JSON value needs to be built until the object is read.

`has` returns True only if loading would neither refuse the object nor change its view. Loading
consists of `snapshot_load.as_stored` and admission. If the effect is uncertain, `has` returns
False, and the object is loaded as JSON.

Equal parts of different views become one Python object. This saves memory, and later stages can
compare the parts by identity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import force_setattr

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.objects import (
    Affinity,
    ApiObject,
    Container,
    ContainerStatus,
    DaemonSet,
    Deployment,
    Node,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodAffinity,
    PodSpec,
    PodStatus,
    ReplicaSet,
    ResourceList,
    StatefulSet,
    Toleration,
    Volume,
)
from fairlead.api.text.integer import parse_int64
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.admission.plugins.default_toleration_seconds import (
    NO_EXECUTE,
    TOLERATED_TAINTS,
)
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.dump.replicas import DumpedReplicas
from fairlead.apiserver.registry.simulation import SIMULATION
from fairlead.apiserver.validation.apps.workload import Replicated
from fairlead.apiserver.validation.core.pod.affinity import check_affinity
from fairlead.apiserver.validation.core.pod.spec import PHASES, check_scheduled_pod
from fairlead.apiserver.validation.meta.format import dns_label_problems, dns_subdomain_problems
from fairlead.apiserver.validation.meta.object_meta import check_labels
from fairlead.apiserver.validation.simulation import (
    check_reported_amounts,
    check_simulated,
    check_simulated_besides_template,
)

Part = TypeVar("Part")

_ENCODE: Final = msgspec.msgpack.Encoder().encode
# The fields of a pod's spec, besides volumes and affinity, on which the result of `has` depends.
_read_fields: Final = attrgetter(
    "containers",
    "init_containers",
    "node_selector",
    "overhead",
    "tolerations",
    "topology_spread_constraints",
    "resources",
    "scheduling_gates",
    "host_network",
    "restart_policy",
    "scheduler_name",
    "priority",
    "priority_class_name",
    "preemption_policy",
    "termination_grace_period_seconds",
    "active_deadline_seconds",
)
# The large fields of a pod's spec, which are equal in most pods of a workload.
_SHARED: Final = (
    "containers",
    "init_containers",
    "node_selector",
    "overhead",
    "tolerations",
    "topology_spread_constraints",
)


# Matches a DNS label. Almost all names are DNS labels, and a DNS label is a valid name for objects
# of every kind that `StoredForm` recognizes. A cache of checked names would not help, because each
# name occurs once.
_usual_name: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?").fullmatch
_INT64_DIGITS: Final = 18  # numbers with this many digits fit into 64 bits


class StoredForm:
    """Tells which objects of a dump are in stored form, so that loading does not change them."""

    def __init__(self) -> None:
        # Checked parts by encoded content; None for parts that loading would change or refuse.
        self._specs: dict[bytes, tuple[Any, ...] | None] = {}
        self._affinities: dict[bytes, Affinity | None] = {}
        self._labels: dict[bytes, dict[str, str] | None] = {}
        self._amounts: dict[bytes, bool] = {}  # validity of amounts in statuses of pods
        self._nodes_by_parts: dict[bytes, NodeStatus | None] = {}
        self._valid_labels: set[tuple[str, str]] = set()
        self._nodes: set[str] = set()  # valid names of nodes

    def has(self, kind: Kind, view: ApiObject, like: ApiObject | None = None) -> bool:
        """Return whether `view`, decoded from an object of `kind`, is certainly in stored form.

        Loading does not change an object in stored form. The method changes `view`: a part that
        equals a part of an earlier view is replaced by the earlier Python object. So nothing else
        may use `view` yet.

        `like` is an object in stored form, of the same class as `view`. Parts that a pod shares
        with the pod `like` are not checked again. If `view` is a workload, the pod templates in
        `view` and `like` must have the same spec except for images. The spec of the template in
        `view` is then not checked again.

        The caller must have checked that all integers of a workload fit into 64 bits. If a pod
        contains a longer integer, OverflowError is raised.
        """
        match view:
            case Pod():
                assert like is None or isinstance(like, Pod)
                like_meta = None if like is None else like.metadata
                return self._has_metadata(kind, view.metadata, like_meta) and self._has_pod(
                    view, like
                )
            case Node():
                is_valid = self._has_valid_parts(view)
            case Deployment() | ReplicaSet() | StatefulSet() | DaemonSet():
                is_valid = view.spec.pod_management_policy != "" and (
                    _is_valid_workload(view) if like is None else self._is_valid_like(view)
                )
            case _:
                return False
        return is_valid and self._has_metadata(kind, view.metadata)

    def has_replica(self, pod: Pod) -> bool:
        """Return True if loading would certainly not change `pod`.

        If the result is False, call `has`. `pod` must be similar to a pod that loading does not
        change. The metadata may differ in name, uid, resourceVersion and times. The spec may differ
        in the node, the volumes, and the node to which the affinity pins the pod. The status may
        differ in all fields except the phase.
        """
        meta, node = pod.metadata, pod.spec.node_name
        if node not in self._nodes:
            if node and dns_subdomain_problems(node):
                return False
            self._nodes.add(node)
        return (
            meta.uid != ""
            and meta.creation_timestamp != ""
            and _usual_name(meta.name) is not None
            and _is_version(meta.resource_version)
            and _is_time(meta.creation_timestamp)
            and _is_time(pod.status.start_time)
        )

    def has_replicas(self, pods: DumpedReplicas) -> bool:
        """Return True if loading would certainly not change any of `pods` (see `has_replica`).

        The result is also False if names or uids are not unique, or if only some of the pods have a
        node or a start time.
        """
        nodes, created, started = {*pods.nodes}, {*pods.created}, {*pods.start_times}
        if any(node and dns_subdomain_problems(node) for node in nodes - self._nodes):
            return False
        self._nodes |= nodes
        return (
            pods.have_own_keys
            and "" not in created
            and (nodes == {""} or "" not in nodes)
            and (started == {""} or "" not in started)
            and all(map(_usual_name, pods.names))
            and all(map(_is_version, pods.versions))
            and all(map(_is_time, created))
            and all(map(_is_time, started))
        )

    def _has_valid_parts(self, node: Node) -> bool:
        """Return whether the taints, amounts and conditions of `node` are complete and valid.

        Nodes of one machine type mostly have equal taints, amounts and conditions. Therefore this
        method checks each combination only once. It also replaces the amounts of `node` by the
        equal Python objects of an earlier node, as described at `has`.
        """
        status = node.status
        conditions = [one.status for one in status.conditions]
        key = _ENCODE((node.spec.taints, status.capacity, status.allocatable, conditions))
        if key not in self._nodes_by_parts:
            is_valid = _is_complete_status(status) and not any(check_simulated({}, node))
            self._nodes_by_parts[key] = status if is_valid else None
        known = self._nodes_by_parts[key]
        if known is None:
            return False
        force_setattr(status, "capacity", known.capacity)
        force_setattr(status, "allocatable", known.allocatable)
        return True

    def _is_valid_like(self, workload: Replicated) -> bool:
        """Return whether `workload` is valid, given that the spec of its pod template is valid."""
        template = workload.spec.template
        if template.keys() != {"metadata", "spec"}:
            return not any(check_simulated({}, workload))
        try:
            meta = decode_as(ObjectMeta, template["metadata"])
        except DecodeError:
            return False
        return self._are_valid_labels(meta.labels) and not any(
            check_simulated_besides_template(workload)
        )

    def _has_metadata(self, kind: Kind, meta: ObjectMeta, like: ObjectMeta | None = None) -> bool:
        """Return whether the metadata is valid and has all fields that a server sets.

        All rules of `check_metadata` and `check_owners` are checked.
        """
        if not (meta.name and meta.uid and meta.creation_timestamp):
            return False
        if kind.namespaced != bool(meta.namespace) or not _is_version(meta.resource_version):
            return False
        if _usual_name(meta.name) is None and SIMULATION.rules(kind).name(meta.name):
            return False
        shares_owners_of_like = (
            like is not None
            and meta.namespace is like.namespace
            and meta.owner_references is like.owner_references
        )
        if not shares_owners_of_like and not _has_valid_owners(meta):
            return False
        if like is None or meta.labels is not like.labels:
            labels = _interned(self._labels, meta.labels, self._are_valid_labels)
            if labels is None:
                return False
            force_setattr(meta, "labels", labels)
        return _is_time(meta.creation_timestamp) and _is_time(meta.deletion_timestamp)

    def _are_valid_labels(self, labels: dict[str, str]) -> bool:
        """Return whether all labels are valid."""
        unknown = labels.items() - self._valid_labels
        if any(check_labels("", dict(unknown))):
            return False
        self._valid_labels |= unknown
        return True

    def _has_pod(self, pod: Pod, like: Pod | None) -> bool:
        spec, status = pod.spec, pod.status
        # The cached results for the spec contain no checks of the status.
        if status.phase not in PHASES or not _is_time(status.start_time):
            return False
        if not self._has_valid_amounts(status):
            return False
        if spec.node_name and dns_subdomain_problems(spec.node_name):
            return False
        if like is None and any(map(_holds_json, spec.volumes)):
            return False
        if spec.affinity is not None and (like is None or spec.affinity is not like.spec.affinity):
            affinity = _interned(self._affinities, spec.affinity, _valid_affinity)
            if affinity is None:
                return False
            force_setattr(spec, "affinity", affinity)
        is_like = like is not None and _read_fields(spec) == _read_fields(like.spec)
        return is_like or self._has_shared(pod)

    def _has_valid_amounts(self, status: PodStatus) -> bool:
        """Return whether the amounts of resources in `status` are quantities."""
        parts: tuple[PodStatus | ContainerStatus, ...] = (
            status,
            *status.container_statuses,
            *status.init_container_statuses,
        )
        key = _ENCODE([(one.resources, one.allocated_resources) for one in parts])
        if key not in self._amounts:
            self._amounts[key] = not any(check_reported_amounts(status))
        return self._amounts[key]

    def _has_shared(self, pod: Pod) -> bool:
        """Return whether the fields that `_read_fields` reads from the spec are complete and valid.

        If an earlier pod had equal values in these fields, the method also changes `pod`. The
        method then replaces parts of the pod's spec by the Python objects of the earlier pod (see
        `has`).
        """
        spec = pod.spec
        key = _ENCODE(_read_fields(spec))
        known = self._specs.get(key)
        if known is None:
            if key in self._specs or not _is_complete(spec) or any(check_scheduled_pod(pod)):
                self._specs[key] = None
                return False
            known = self._specs[key] = tuple(getattr(spec, field) for field in _SHARED)
            return True
        for field, part in zip(_SHARED, known, strict=True):
            force_setattr(spec, field, part)
        return True


def _is_complete_status(status: NodeStatus) -> bool:
    """Return whether capacity and allocatable need no defaults, and their amounts are strings."""
    return (
        (bool(status.allocatable) or not status.capacity)
        and _are_texts(status.allocatable)
        and _are_texts(status.capacity)
    )


def _is_valid_workload(workload: Replicated) -> bool:
    """Return whether `workload` is valid, and each container of its pod template has an image."""
    spec = workload.spec.template.get("spec")
    return (
        isinstance(spec, dict)
        and _are_containers(spec.get("containers"))
        and not any(check_simulated({}, workload))
    )


def _are_containers(containers: Any) -> bool:
    """Return whether `containers` is a list of at least one container, each with an image."""
    return (
        isinstance(containers, list)
        and bool(containers)
        and all(isinstance(one, dict) and isinstance(one.get("image"), str) for one in containers)
    )


def _has_valid_owners(meta: ObjectMeta) -> bool:
    """Return whether `meta.namespace` and all owner references are valid (see `check_owners`)."""
    if meta.namespace and dns_label_problems(meta.namespace):
        return False
    owners = meta.owner_references
    return (
        all(owner.kind and owner.name and owner.uid for owner in owners)
        and sum(owner.controller for owner in owners) <= 1
    )


def _interned(
    known: dict[bytes, Part | None], part: Part, is_valid: Callable[[Part], bool]
) -> Part | None:
    """Return the first part that equals `part`, so that equal parts are one Python object.

    Return None if `part` is invalid. `known` maps each encoded part to the first equal part, or to
    None if the part is invalid. A new part is added to `known`.
    """
    key = _ENCODE(part)
    if key not in known:
        known[key] = part if is_valid(part) else None
    return known[key]


def _valid_affinity(affinity: Affinity) -> bool:
    """Return whether an affinity is valid and its terms have no matchLabelKeys to merge."""
    pods = (affinity.pod_affinity, affinity.pod_anti_affinity)
    return not any(check_affinity("", affinity)) and not any(map(_has_label_keys, pods))


def _has_label_keys(affinity: PodAffinity | None) -> bool:
    if affinity is None:
        return False
    required = affinity.required_during_scheduling_ignored_during_execution
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    terms = (*required, *(weighted.pod_affinity_term for weighted in preferred))
    return any(term.match_label_keys or term.mismatch_label_keys for term in terms)


def _holds_json(volume: Volume) -> bool:
    """Return whether the view of a volume contains raw JSON, which may contain nulls."""
    return (
        volume.ephemeral is not None
        or volume.azure_file is not None
        or volume.vsphere_volume is not None
    )


def _is_complete(spec: PodSpec) -> bool:
    """Return whether defaults, matchLabelKeys and admission would leave `spec` unchanged."""
    grace_s = spec.termination_grace_period_seconds
    return (
        bool(spec.containers)
        and grace_s is not None
        and grace_s >= 0
        and "" not in (spec.restart_policy, spec.scheduler_name)
        and spec.resources is None
        and not (spec.priority_class_name and spec.priority is None)
        and all(_tolerates(spec.tolerations, key) for key in TOLERATED_TAINTS)
        and not any(one.match_label_keys for one in spec.topology_spread_constraints)
        and all(
            _is_complete_container(one, is_on_host=spec.host_network)
            for one in (*spec.containers, *spec.init_containers)
        )
    )


def _tolerates(tolerations: Iterable[Toleration], key: str) -> bool:
    return any(one.key in (key, "") and one.effect in (NO_EXECUTE, "") for one in tolerations)


def _is_complete_container(container: Container, *, is_on_host: bool) -> bool:
    resources = container.resources
    return (
        container.name != ""
        and not resources.claims  # raw JSON, which may contain nulls
        and resources.limits.keys() <= resources.requests.keys()
        and "" not in resources.requests.values()
        and _are_texts(resources.requests)
        and _are_texts(resources.limits)
        and all(port.protocol for port in container.ports)
        and not (is_on_host and any(not port.host_port for port in container.ports))
    )


def _are_texts(amounts: ResourceList) -> bool:
    """Return whether all amounts are strings, not numbers.

    A number could have too many digits to be stored.
    """
    return all(isinstance(amount, str) for amount in amounts.values())


def _is_version(text: str) -> bool:
    """Return whether `text` is a decimal int64; loading replaces any other resourceVersion."""
    if not text.isdecimal():
        return False
    is_short = len(text) <= _INT64_DIGITS and text.isascii()
    return is_short or parse_int64(text) is not None


def _is_time(text: str) -> bool:
    """Return whether `text` is a timestamp or ""."""
    try:
        return not text or parse_timestamp(text) is not None
    except ValueError:
        return False
