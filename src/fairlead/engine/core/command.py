"""Command: what to do. The only output of the engine.

A command names its target completely (kind, namespace, name, uid), so that a world can perform
it without asking back. Objects inside commands are plain JSON values in Kubernetes' spelling.
A refused command is answered by `CommandFailed`, a performed one by `CommandSucceeded`, except that
requests for information have answers of their own: `CallExtender`, `DeleteCollection` and
`LookUpOwners`. Nothing answers `RecordEvent`, since nothing may depend on an event being written.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from fairlead.engine.core.issuer import Issuer


class ObjectRef(Struct, frozen=True):
    """The identity of an API object; `namespace` is "" for cluster-scoped kinds.

    `kind` is a name (`Pod`), with its API group where several have a kind of that name
    (`PodGroup.scheduling.volcano.sh`).
    """

    kind: str
    namespace: str
    name: str
    uid: str = ""

    @property
    def key(self) -> str:
        """The key `namespace/name`, or `name` for cluster-scoped kinds."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Condition(Struct, frozen=True):
    """One entry of `status.conditions`; the performing world stamps lastTransitionTime.

    `last_heartbeat_time` exists on nodes only; "" leaves it as it is.
    """

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_heartbeat_time: str = ""


class Bind(Struct, frozen=True):
    """POST pods/binding: the pod gets spec.nodeName and PodScheduled=True."""

    pod: ObjectRef
    node: str


class PatchStatus(Struct, frozen=True):
    """Merge `fields` into status, and `conditions` into status.conditions by type.

    A field whose value is None is removed. A condition keeps its lastTransitionTime unless its
    status changes. A non-empty `resource_version` is a precondition.
    """

    target: ObjectRef
    fields: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    why: str = ""
    resource_version: str = ""


class ApplyStatus(Struct, frozen=True):
    """Server-side apply of `status`, by force, under a field manager of its own."""

    target: ObjectRef
    status: Mapping[str, Any]
    field_manager: str


class PatchObject(Struct, frozen=True):
    """A JSON merge patch (RFC 7386) of everything but status.

    A Deployment's annotations may come with status, which is written together.
    """

    target: ObjectRef
    patch: Mapping[str, Any]


class CreateObject(Struct, frozen=True):
    """POST a new object; `manifest` is complete JSON with apiVersion and kind."""

    manifest: Mapping[str, Any]

    @property
    def target(self) -> ObjectRef:
        """The identity of the new object (the name is "" when generateName is used)."""
        metadata = self.manifest.get("metadata", {})
        return ObjectRef(
            str(self.manifest.get("kind", "")),
            metadata.get("namespace", ""),
            metadata.get("name", ""),
        )


class DeleteObject(Struct, frozen=True):
    """DELETE an object; pods go through graceful deletion.

    `grace_period_s` None means the object's own (30 s for pods without one); 0 removes at once.
    A non-empty `target.uid` is a precondition. `policy` is what happens to dependents:
    Background, Foreground or Orphan.
    """

    target: ObjectRef
    grace_period_s: int | None = None
    why: str = ""
    policy: str = "Background"


class DeleteCollection(Struct, frozen=True):
    """DELETE all objects of a kind in a namespace; an empty `kind` means every namespaced kind.

    `CollectionDeleted` answers what remains.
    """

    namespace: str
    kind: str = ""


class FinalizeNamespace(Struct, frozen=True):
    """POST namespaces/finalize: take the finalizer `kubernetes` off spec.finalizers."""

    target: ObjectRef


class LookUpOwners(Struct, frozen=True):
    """GET the owners that `target` names; `OwnersLookedUp` answers which do not exist."""

    target: ObjectRef


class UpdateQuotaStatus(Struct, frozen=True):
    """PATCH a ResourceQuota's status with its limits and what its namespace uses of them.

    The API server's evaluators, which also enforce the quota, count the usage.
    """

    target: ObjectRef


class EvictPod(Struct, frozen=True):
    """POST pods/eviction: a deletion that PodDisruptionBudgets may refuse with 429."""

    pod: ObjectRef
    why: str = ""


class RecordEvent(Struct, frozen=True):
    """An events.k8s.io event about `regarding`; `note` is not yet cut to 1,024 bytes.

    `field_path` names a part of the object, such as `spec.containers{name}`.
    """

    regarding: ObjectRef
    type: str
    reason: str
    action: str
    note: str
    reporting_controller: str
    related: ObjectRef | None = None
    field_path: str | UnsetType = UNSET  # unset, it is left out of command logs


class ExtenderVerb(StrEnum):
    """Calls of the extender protocol; each has its own request and response."""

    FILTER = "filter"
    PRIORITIZE = "prioritize"
    PREEMPT = "preempt"
    BIND = "bind"


class NodeVictims(Struct, frozen=True):
    """Pods that would leave `node`, least important last; `pdb_violations` breach a budget."""

    node: str
    pods: tuple[ObjectRef, ...]
    pdb_violations: int = 0


class CallExtender(Struct, frozen=True):
    """POST a question about `pod` to an extender.

    `extender` is its index in the scheduler's configuration, which says how to reach it. FILTER and
    PRIORITIZE are about `nodes`, BIND about the one in it, PREEMPT about `victims`. With `by_name`
    nodes and victims are only named, otherwise the whole objects are sent.
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


class Issued(Struct, frozen=True):
    """A command, and the component in whose name a world performs it."""

    command: Command
    issuer: Issuer
