"""Command: an action that a world must perform. Commands are the only output of the engine.

A *world* performs commands in a real or simulated cluster. A command names the kind, namespace,
name and uid of its target. A world needs no further information to perform it. Objects inside
commands are JSON values with Kubernetes' field names. The world answers a command with
`CommandSucceeded` or `CommandFailed`. `CallExtender`, `DeleteCollection` and `LookUpOwners` have
their own answers. Some worlds do not answer a `RecordEvent`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType, field, to_builtins

from fairlead.api.objects import Node, Pod
from fairlead.engine.core.issuer import Issuer

# The fields of metadata that a new object with the same name does not get
_OF_ONE_OBJECT: Final = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)


class ObjectRef(Struct, frozen=True):
    """The identity of an API object; `namespace` is "" for cluster-scoped kinds.

    `kind` is the name of the kind (`Pod`). If several API groups have a kind of that name, the
    group follows (`PodGroup.scheduling.volcano.sh`).
    """

    kind: str
    namespace: str
    name: str
    uid: str = ""

    @property
    def key(self) -> str:
        """The key `namespace/name`, or `name` for cluster-scoped kinds."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def pod_ref(pod: Pod) -> ObjectRef:
    """Return the object reference of `pod`."""
    meta = pod.metadata
    return ObjectRef("Pod", meta.namespace, meta.name, meta.uid)


def node_ref(node: Node) -> ObjectRef:
    """Return the object reference of `node`."""
    return ObjectRef("Node", "", node.metadata.name, node.metadata.uid)


class Condition(Struct, frozen=True):
    """One entry of `status.conditions`. The real or simulated cluster sets lastTransitionTime.

    Only conditions of nodes have `last_heartbeat_time`; "" leaves it unchanged.
    """

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_heartbeat_time: str = ""


class ObservedCondition(Condition, frozen=True):
    """A condition with observedGeneration: the object's generation when the condition was set."""

    observed_generation: int = 0


def observed(condition: Condition, generation: int) -> Condition:
    """Return `condition` with the observedGeneration `generation`.

    Returns `condition` itself if `generation` is 0. Pods of older API servers have no generation.
    """
    # upstream: pkg/api/v1/pod/util.go: CalculatePodConditionObservedGeneration
    if not generation:
        return condition
    return ObservedCondition(
        condition.type,
        condition.status,
        condition.reason,
        condition.message,
        observed_generation=generation,
    )


class Bind(Struct, frozen=True):
    """POST pods/binding: sets the pod's spec.nodeName and its condition PodScheduled=True."""

    pod: ObjectRef
    node: str


class PatchStatus(Struct, frozen=True):
    """Merges `fields` and `conditions` into the status of `target`.

    Conditions are merged by type. A field whose value is None is removed. The lastTransitionTime of
    a condition changes only if the `status` of the condition changes. If `resource_version` is not
    empty, the object must have this resourceVersion. `why` is the reason, for reports; it is not
    sent to the API server.
    """

    target: ObjectRef
    fields: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    why: str = ""
    resource_version: str = ""


class ApplyStatus(Struct, frozen=True):
    """Server-side apply of `status` with force, under the field manager of this command."""

    target: ObjectRef
    status: Mapping[str, Any]
    field_manager: str


class PatchObject(Struct, frozen=True, omit_defaults=True):
    """A JSON merge patch (RFC 7386) of an object, normally without its status.

    A patch of a Deployment's annotations may also contain the Deployment's status, so that one
    write sets both. `subresource` is the subresource that upstream patches instead of the object,
    such as `scale`. If it is `resize`, the patch changes only the resources of a pod's containers.
    A patch with any other subresource goes to the object itself, and only managedFields records
    `subresource`.
    """

    target: ObjectRef
    patch: Mapping[str, Any]
    subresource: str = ""


class CreateObject(Struct, frozen=True):
    """POST a new object; `manifest` is complete JSON with apiVersion and kind."""

    manifest: Mapping[str, Any]

    @property
    def target(self) -> ObjectRef:
        """The identity of the new object. The name is "" if the object uses generateName."""
        metadata = self.manifest.get("metadata", {})
        return ObjectRef(
            str(self.manifest.get("kind", "")),
            metadata.get("namespace", ""),
            metadata.get("name", ""),
        )


def create_again(pod: Pod) -> CreateObject:
    """Return the command that creates the deleted `pod` again, with the same name and node.

    The new pod has only the fields that Fairlead reads.
    """
    manifest: dict[str, Any] = to_builtins(pod)
    meta = {key: value for key, value in manifest["metadata"].items() if key not in _OF_ONE_OBJECT}
    return CreateObject(
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": manifest["spec"]}
    )


class DeleteObject(Struct, frozen=True):
    """DELETE an object; pods go through graceful deletion.

    If `grace_period_s` is None, the object's own grace period applies. The default for pods is 30
    s. If `grace_period_s` is 0, the object is removed immediately. If `target.uid` is not empty,
    the object must have this uid. `policy` determines the deletion of dependents: Background,
    Foreground or Orphan. `why` is the reason, for reports; it is not sent to the API server.
    """

    target: ObjectRef
    grace_period_s: int | None = None
    why: str = ""
    policy: str = "Background"


class DeleteCollection(Struct, frozen=True):
    """DELETE all objects of a kind in a namespace; an empty `kind` means every namespaced kind.

    The answer is `CollectionDeleted`.
    """

    namespace: str
    kind: str = ""


class FinalizeNamespace(Struct, frozen=True):
    """POST namespaces/finalize: removes the finalizer `kubernetes` from spec.finalizers."""

    target: ObjectRef


class LookUpOwners(Struct, frozen=True):
    """GET the owners in the ownerReferences of `target`; the answer is `OwnersLookedUp`."""

    target: ObjectRef


class UpdateQuotaStatus(Struct, frozen=True):
    """PATCH a ResourceQuota's status: the quota's limits, and the current usage in its namespace.

    The command does not contain the usage, because the API server counts the objects when it
    performs the command.
    """

    target: ObjectRef


class EvictPod(Struct, frozen=True):
    """POST pods/eviction: a deletion that PodDisruptionBudgets may refuse with 429.

    `why` is the reason, for reports; it is not sent to the API server.
    """

    pod: ObjectRef
    why: str = ""


class RecordEvent(Struct, frozen=True):
    """An events.k8s.io event to record about `regarding`.

    `note` is cut to 1,024 bytes when the event is written. `field_path` names the part of
    `regarding` that the event concerns, such as `spec.containers{name}`.
    """

    regarding: ObjectRef
    type: str
    reason: str
    action: str
    note: str
    reporting_controller: str
    related: ObjectRef | None = None
    field_path: str | UnsetType = UNSET  # left out of command logs if unset


class ExtenderVerb(StrEnum):
    """The calls of the extender protocol."""

    FILTER = "filter"
    PRIORITIZE = "prioritize"
    PREEMPT = "preempt"
    BIND = "bind"


class NodeVictims(Struct, frozen=True):
    """The victims of a preemption on `node`; the least important victim is last.

    `pdb_violations` is the number of victims whose removal violates a disruption budget.
    """

    node: str
    pods: tuple[ObjectRef, ...]
    pdb_violations: int = 0


class CallExtender(Struct, frozen=True):
    """POST a request about `pod` to the URL `url` of an extender.

    `extender` is the extender's index in the scheduler's configuration. FILTER and PRIORITIZE send
    `nodes`, BIND sends the single node in `nodes`, PREEMPT sends `victims`. If `by_name` is set,
    the request contains only the names of nodes and victims, otherwise the complete objects.
    """

    extender: int
    verb: ExtenderVerb
    url: str
    pod: ObjectRef
    nodes: tuple[str, ...] = ()
    victims: tuple[NodeVictims, ...] = ()
    by_name: bool = False


Command = (
    Bind
    | PatchStatus
    | ApplyStatus
    | PatchObject
    | CreateObject
    | DeleteObject
    | DeleteCollection
    | FinalizeNamespace
    | LookUpOwners
    | UpdateQuotaStatus
    | EvictPod
    | RecordEvent
    | CallExtender
)


class IssuedCommand(Struct, frozen=True):
    """A command, and the component in whose name a world performs it."""

    command: Command
    issuer: Issuer
