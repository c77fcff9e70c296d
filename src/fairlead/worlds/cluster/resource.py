"""Lists, for each controller, the resources that it reads from a running cluster.

upstream: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/{policy,controller_policy}.go
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from fairlead.apiserver.kind import DEVICE_TAINT_RULE, KINDS, POD_GROUP, Kind, find_kind
from fairlead.client.api_resource import ApiResource
from fairlead.engine.scheduling.version import SchedulerVersion

SCHEDULER: Final = "scheduler"
BATCH: Final = "batch"
NODE_LIFECYCLE: Final = "node-lifecycle"
TAINT_EVICTION: Final = "taint-eviction"
CONTROLLERS: Final = (SCHEDULER, BATCH, NODE_LIFECYCLE, TAINT_EVICTION)

LEASES_NAMESPACE: Final = "kube-node-lease"
# No decision is possible unless these resources can be read.
REQUIRED: Final = ("nodes", "pods")
_STORAGE: Final = (
    "persistentvolumeclaims",
    "persistentvolumes",
    "storageclasses.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "csidrivers.storage.k8s.io",
    "csistoragecapacities.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
)
_SCHEDULING: Final = (
    *REQUIRED,
    "namespaces",
    "poddisruptionbudgets.policy",
    "services",
    "replicationcontrollers",
    "replicasets.apps",
    "statefulsets.apps",
    *_STORAGE,
    "resourceclaims.resource.k8s.io",
    "resourceslices.resource.k8s.io",
    "deviceclasses.resource.k8s.io",
)
_JOBS: Final = (
    "priorityclasses.scheduling.k8s.io",
    "podgroups.scheduling.volcano.sh",
    "queues.scheduling.volcano.sh",
    "podgroups.scheduling.incubator.k8s.io",
    "queues.scheduling.incubator.k8s.io",
    "podgroups.scheduling.sigs.dev",
    "queues.scheduling.sigs.dev",
    "podgroups.scheduling.x-k8s.io",
)
_READ: Final = {
    SCHEDULER: _SCHEDULING,
    BATCH: (*_SCHEDULING, *_JOBS),
    NODE_LIFECYCLE: (*REQUIRED, "leases.coordination.k8s.io"),
    TAINT_EVICTION: REQUIRED,
}


def gated_resources(version: SchedulerVersion) -> tuple[str, ...]:
    """Return the resources that the scheduler reads because a feature gate in `version` is on.

    The result contains names such as `podgroups.scheduling.k8s.io`.
    """
    return (
        *((DEVICE_TAINT_RULE.resource,) if version.device_taint_rules else ()),
        *((POD_GROUP.resource,) if version.pod_groups else ()),
    )


def watched_resources(
    controllers: Collection[str], gated: Collection[str] = ()
) -> tuple[ApiResource, ...]:
    """Return the resources that `controllers` read, without duplicates.

    If the scheduler is one of `controllers`, the resources in `gated` are included.
    """
    names = dict.fromkeys(name for one in CONTROLLERS if one in controllers for name in _READ[one])
    if SCHEDULER in controllers:
        names |= dict.fromkeys(gated)
    by_name = {kind.resource: kind for kind in reversed(KINDS)}
    return tuple(_resource(by_name[name]) for name in names)


def resources_by_kind(resources: Collection[ApiResource]) -> dict[str, ApiResource]:
    """Return `resources` by kind name, with group (`Queue.example.com`) and without (`Queue`).

    If several groups have a kind of the same name, the key without a group stands for the kind that
    `find_kind` returns.
    """
    named: dict[str, ApiResource] = {}
    for resource in resources:
        for name in _names(resource):
            named.setdefault(name, resource)
    return named


def is_built_in(resource: ApiResource) -> bool:
    """Return whether Kubernetes serves `resource` itself, without a CustomResourceDefinition."""
    served = ((one.api_version, one.kind) for one in KINDS if not one.is_custom)
    return (resource.api_version, resource.kind) in served


def _names(resource: ApiResource) -> Iterator[str]:
    group = resource.api_version.rpartition("/")[0]
    yield f"{resource.kind}.{group}" if group else resource.kind
    # A name without a group stands for the built-in kind, if there is one of this name.
    known = find_kind(resource.kind)
    if known is None or known.api_version == resource.api_version:
        yield resource.kind


def _resource(kind: Kind) -> ApiResource:
    is_lease = kind.resource == "leases.coordination.k8s.io"
    return ApiResource(
        kind.api_version,
        kind.kind,
        kind.plural,
        kind.namespaced,
        only_namespace=LEASES_NAMESPACE if is_lease else "",
    )
