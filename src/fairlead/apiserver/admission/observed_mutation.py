"""ObservedMutations: changes new pods as mutating admission changed the pods of a snapshot.

A simulation calls no webhooks. But the pods of a snapshot show what the webhooks and admission
plugins of the real server changed. Webhooks and plugins have added containers, tolerations,
nodeSelector entries and other fields that the template of the pod's workload lacks, or have changed
requests and limits. A new pod of the workload gets the same additions, requests and limits. But a
request or limit is kept if it differs between the new pod's template and the template of the
observed pods. All other fields that the new pod's template sets are kept.

    template       containers: app                 (requests cpu 300m)
    snapshot pod   containers: app, istio-proxy    (requests cpu 300m and 100m)
    new pod        containers: app, istio-proxy    (requests cpu 300m and 100m)

If the template has scheduling gates but its pods are bound, a program such as Kueue has removed the
gates. New pods are created without these gates. The program may also have added nodeSelector
entries that tie each pod to one node. Therefore a new pod of such a template gets an added entry
only if all bound pods have the same entry. A hostname entry is never added.

The pods of a new ReplicaSet get the same additions as the pods of the Deployment's other
ReplicaSets. A custom resource that controls ReplicaSets or StatefulSets, such as an Argo Rollout,
is treated like a Deployment. If a pod was resized in place, its requests and limits are ignored.
Exception: if VerticalPodAutoscaler resized the pod, the requests and limits are used, because the
webhook of VerticalPodAutoscaler sets the same values in new pods.

upstream: apiserver/pkg/admission/plugin/webhook/mutating, plugin/pkg/admission/podnodeselector,
plugin/pkg/admission/extendedresourcetoleration; sigs.k8s.io/kueue
pkg/controller/tas/topology_ungater.go: Reconcile
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.objects import (
    DaemonSet,
    Job,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.pods.facts import controller_of
from fairlead.api.pods.replicas import LoadedObjects
from fairlead.api.well_known_label import HOSTNAME
from fairlead.apiserver.admission.attributes import AdmissionAttributes
from fairlead.apiserver.admission.plugins.default_toleration_seconds import (
    NO_EXECUTE,
    TOLERATED_TAINTS,
)
from fairlead.apiserver.kind import POD, REPLICA_SET, STATEFUL_SET
from fairlead.apiserver.storage.storage import Storage

_Owner = ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job
_OWNERS: Final = (ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job)
_OWNED: Final = {one.kind: one for one in (REPLICA_SET, STATEFUL_SET)}  # may be owned, too
_REVISION: Final = "controller-revision-hash"
# The updater and the admission controller of VerticalPodAutoscaler annotate the pods they change.
OF_VERTICAL_AUTOSCALER: Final = ("vpaUpdates", "vpaObservedContainers", "vpaInPlaceUpdated")
_CONTAINERS: Final = ("initContainers", "containers")
# Fields that a new pod gets if it does not have them.
_WHOLE: Final = ("affinity", "topologySpreadConstraints", "runtimeClassName")
_AMOUNTS: Final = ("requests", "limits")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
# The amounts in a template and in its pods (None if absent), by (field of resources, resource).
_Amounts = Mapping[tuple[str, str], tuple[Any, Any]]


class _Mutation(Struct, frozen=True):
    """What admission changed in the pods of a template, and which scheduling gates were removed.

    `amounts` are the changed requests and limits, by name of the container. `whole` contains the
    fields in `_WHOLE` that the pods have and the template lacks. `gates` are the names of the
    template's scheduling gates that were removed from the pods.
    """

    containers: Mapping[str, Sequence[Json]]
    amounts: Mapping[str, _Amounts]
    tolerations: Sequence[Json]
    node_selector: Mapping[str, str]
    whole: Json
    gates: Sequence[str]

    def applied_to(self, spec: Json) -> Json:
        """Return the pod spec `spec` after the mutation."""
        found = {**self.whole, **spec}
        if self.gates:
            gates = found.pop("schedulingGates", None) or ()
            kept = [one for one in gates if one["name"] not in self.gates]
            found |= {"schedulingGates": kept} if kept else {}
        for field in _CONTAINERS:
            own = [self._with_amounts(one) for one in spec.get(field) or ()]
            names = {_name(one) for one in own}
            own += [one for one in self.containers[field] if _name(one) not in names]
            if own:
                found[field] = own
        present = spec.get("tolerations") or []
        tolerated = {_taint(one) for one in present}
        more = [one for one in self.tolerations if _taint(one) not in tolerated]
        if more:
            found["tolerations"] = [*present, *more]
        if self.node_selector:
            found["nodeSelector"] = {**self.node_selector, **(spec.get("nodeSelector") or {})}
        return found

    def _with_amounts(self, container: Json) -> Json:
        """Return `container` with the requests and limits that admission gave the observed pods.

        An amount of `container` is kept if it differs from the amount in these pods' template.
        """
        changed = self.amounts.get(_name(container))
        if not changed:
            return container
        resources = {**(container.get("resources") or {})}
        for (field, resource), (stated, admitted) in changed.items():
            present = resources.get(field) or {}
            if present.get(resource) == stated:
                resources[field] = {**present, resource: admitted}
        return {**container, "resources": resources}


class ObservedMutations:
    """An admission plugin that changes new pods as the real server changed a snapshot's pods."""

    def __init__(self) -> None:
        """The plugin leaves new pods unchanged until `observe` is called."""
        self._by_owner: dict[str, _Mutation] = {}

    def observe(self, loaded: LoadedObjects) -> None:
        """Record how the pods in `loaded.replicas` differ from the templates of their owners."""
        owners = {one.metadata.uid: one for one in loaded.others if isinstance(one, _OWNERS)}
        samples: dict[str, list[Pod]] = {}  # by uid of the owner: a pod of each group
        for replicas in loaded.replicas:
            pod = replicas[0]
            reference = controller_of(pod.metadata)
            owner = owners.get(reference.uid) if reference is not None else None
            if owner is not None and _is_of_template(pod, owner):
                samples.setdefault(owner.metadata.uid, []).append(pod)
        for uid, pods in samples.items():
            mutation = _mutation(owners[uid], pods)
            if mutation is not None:
                self._by_owner[uid] = mutation
                above = controller_of(owners[uid].metadata)
                if above is not None:
                    self._by_owner[above.uid] = mutation

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Return the object; a new pod gets the changes observed in the pods of its workload."""
        obj = attributes.obj
        if not self._by_owner or attributes.kind is not POD or not attributes.is_new:
            return obj
        reference = _controller(obj)
        mutation = self._by_owner.get(reference.get("uid", ""))
        kind = _OWNED.get(reference.get("kind", ""))
        if mutation is None and kind is not None:
            found = storage.find(kind, attributes.namespace, reference.get("name", ""))
            mutation = self._by_owner.get(_controller(found or {}).get("uid", ""))
        if mutation is None:
            return obj
        return {**obj, "spec": mutation.applied_to(obj["spec"])}


def _name(container: Json) -> str:
    """Return the name of `container`; "" if a hand-written pod or template leaves it out."""
    return str(container.get("name") or "")


def _taint(toleration: Json) -> tuple[Any, Any]:
    """Return (key, effect) that `toleration` tolerates; None stands for all keys or all effects."""
    return toleration.get("key"), toleration.get("effect")


def _controller(obj: Json) -> Json:
    """Return the reference to the controller of `obj`; {} if it has none."""
    references: Iterable[Json] = (obj.get("metadata") or {}).get("ownerReferences") or ()
    return next((one for one in references if one.get("controller")), {})


def _is_of_template(pod: Pod, owner: _Owner) -> bool:
    """Return whether `pod` was created from the current template of `owner`; False if unknown.

    For a DaemonSet, the answer is unknown if some of its pods are out of date. For a ReplicaSet,
    ReplicationController or Job, the result is True without a check, because their templates rarely
    change after the first pod has been created.
    """
    match owner:
        case StatefulSet():
            update = owner.status.get("updateRevision")
            return bool(update) and pod.metadata.labels.get(_REVISION) == update
        case DaemonSet():
            updated = owner.status.get("updatedNumberScheduled")  # None if no pod is up to date
            return updated is not None and updated == owner.status.get("desiredNumberScheduled")
        case _:
            return True


def _mutation(owner: _Owner, pods: Sequence[Pod]) -> _Mutation | None:
    """Return what admission added to `pods`, which were created from the template of `owner`.

    Return None if admission added nothing.
    """
    stated = owner.spec.template.get("spec") or {}
    gates = [one.get("name", "") for one in stated.get("schedulingGates") or ()]
    bound = [one for one in pods if one.spec.node_name] if gates else []  # a bound pod has no gates
    pod = bound[0] if bound else pods[0]
    assigned = _common_entries(bound) if bound else pod.spec.node_selector
    spec: Json = msgspec.json.decode(msgspec.json.encode(pod.spec))
    is_resized = pod.metadata.generation > 1 and not any(
        one in pod.metadata.annotations for one in OF_VERTICAL_AUTOSCALER
    )
    if isinstance(owner, DaemonSet):
        spec["affinity"] = _unpinned(spec.get("affinity") or {})
    containers: dict[str, list[Json]] = {}
    amounts: dict[str, _Amounts] = {}
    for field in _CONTAINERS:
        own = {_name(one): one for one in stated.get(field) or ()}
        admitted = spec.get(field) or []
        containers[field] = [one for one in admitted if _name(one) not in own]
        if not is_resized:
            for one in admitted:
                name = _name(one)
                if name in own and (changed := _changed(own[name], one)):
                    amounts[name] = changed
    selector = stated.get("nodeSelector") or {}
    tolerated = {_taint(one) for one in stated.get("tolerations") or ()}
    tolerated |= {(key, NO_EXECUTE) for key in TOLERATED_TAINTS}  # by DefaultTolerationSeconds
    found = _Mutation(
        containers,
        amounts,
        [one for one in spec.get("tolerations") or () if _taint(one) not in tolerated],
        {key: one for key, one in assigned.items() if key not in selector},
        {one: spec[one] for one in _WHOLE if spec.get(one) and not stated.get(one)},
        gates if bound else (),
    )
    has_any = any(containers.values()) or amounts or found.tolerations or found.gates
    return found if has_any or found.node_selector or found.whole else None


def _unpinned(affinity: Json) -> Json:
    """Return `affinity` without the matchFields that restrict a DaemonSet's pod to its node."""
    # upstream: daemonset_util.go:ReplaceDaemonSetPodNodeNameNodeAffinity
    node_affinity = {**(affinity.get("nodeAffinity") or {})}
    terms = (node_affinity.pop(_REQUIRED, None) or {}).get("nodeSelectorTerms") or ()
    expressions = [one["matchExpressions"] for one in terms if one.get("matchExpressions")]
    if expressions:
        others = [{"matchExpressions": one} for one in expressions]
        node_affinity[_REQUIRED] = {"nodeSelectorTerms": others}
    found = {key: value for key, value in affinity.items() if key != "nodeAffinity"}
    return found | ({"nodeAffinity": node_affinity} if node_affinity else {})


def _common_entries(pods: Sequence[Pod]) -> Mapping[str, str]:
    """Return the nodeSelector entries that all `pods` have, except for a hostname entry."""
    others = [one.spec.node_selector.items() for one in pods[1:]]
    return {
        key: value
        for key, value in pods[0].spec.node_selector.items()
        if key != HOSTNAME and all((key, value) in one for one in others)
    }


def _changed(stated: Json, admitted: Json) -> _Amounts:
    """Return the requests and limits of the container `admitted` that differ from `stated`.

    `stated` is the same container in the pod template of the workload. A request that `stated`
    lacks defaults to the limit in `stated`.
    """
    before, after = stated.get("resources") or {}, admitted.get("resources") or {}
    limits = before.get("limits") or {}  # a limit is also the default of a request
    found = {}
    for field in _AMOUNTS:
        own = {**limits, **(before.get(field) or {})} if field == "requests" else limits
        for resource, amount in (after.get(field) or {}).items():
            if own.get(resource) != amount:
                found[field, resource] = (own.get(resource), amount)
    return found
