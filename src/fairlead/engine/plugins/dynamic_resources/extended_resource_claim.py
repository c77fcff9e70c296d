"""The special claim for a pod's extended resources that devices provide.

A DeviceClass can be mapped to an extended resource (`engine.state.devices.extended_resources`). A
pod can then request devices as an amount of this resource, such as `example.com/gpu: 2`. If a
node's status.allocatable has none of the resource, DynamicResources allocates devices of the class
to a special ResourceClaim. PreBind creates this claim in the API and writes its name into the pod's
status.

Each restartable init container and each app container gets its own request. Any other init
container terminates before later containers start. So this init container can use the devices that
are requested for the later containers. If these devices are too few, one further request covers the
rest. All init containers that are not restartable share this further request.

Example: init container i needs 3 GPUs. Containers a and b need 1 each. The requests are
`container-1-request-0` (a: 1), `container-2-request-0` (b: 1) and `container-0-request-0` (1 more
for i). Container i is mapped to all three.

upstream: plugins/dynamicresources/extendeddynamicresources.go
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, structs

from fairlead.api.codec import as_json
from fairlead.api.objects import (
    ClaimAllocation,
    ClaimConsumer,
    Container,
    ContainerExtendedResourceRequest,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ObjectMeta,
    Pod,
    ResourceClaim,
    ResourceClaimSpec,
)
from fairlead.api.quantity import NANOS_PER_UNIT, parse_quantity
from fairlead.engine.core.command import (
    CreateObject,
    DeleteObject,
    ObjectRef,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.status import Status, unresolvable
from fairlead.engine.plugins.dynamic_resources.claim_binder import (
    FINALIZER,
    Writes,
    claim_ref,
    with_timestamp,
)
from fairlead.engine.state.devices.extended_resources import (
    CLAIM_ANNOTATION,
    ExtendedResources,
    may_be_devices,
)
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import FIRST_SCALAR, ResourceColumns

# Not a valid name, so that it cannot be the name of another claim.
NAME_IN_MEMORY: Final = "<extended-resources>"
CANNOT_FIT: Final = unresolvable("cannot fit resource")
STALE: Final = unresolvable("cannot schedule extended resource claim")
# The maximum length of a claim's name without its suffix, which has 5 characters.
_NAME_MAX: Final = 58
# The characters of the suffixes that generateName adds.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


class SpecialClaim(Struct, frozen=True):
    """The ResourceClaim that the scheduler makes for extended resources that a pod requests.

    The claim contains only the extended resources that a node must provide as devices. Nodes that
    must provide the same resources share one SpecialClaim. `mappings` contains the requests that
    each container uses.
    """

    claim: ResourceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]


class ExtendedResourceRequests:
    """The extended resources of a pod, at least one of which a DeviceClass provides."""

    def __init__(self, pod: Pod, columns: Mapping[str, int], classes: ExtendedResources) -> None:
        """`columns` maps the pod's extended resources to their columns (`ResourceColumns`).

        `classes` maps extended resources to DeviceClasses.
        """
        self._pod = pod
        self._columns = columns
        self._classes = classes
        self._claims: dict[tuple[str, ...], SpecialClaim] = {}

    def claim_for(self, node: NodeInfo) -> SpecialClaim | Status | None:
        """Return the claim for those extended resources that `node` must provide as devices.

        Returns None if there are no such resources. Returns the status CANNOT_FIT if the pod
        requests a resource that neither the node nor a DeviceClass provides.

        upstream: filterExtendedResources
        """
        devices: list[str] = []
        for name, column in self._columns.items():
            if node.allocatable_of(column) == 0 and self._classes.class_of(name) is not None:
                devices.append(name)
            elif name not in node.node.status.allocatable:
                return CANNOT_FIT
        return self._claim(tuple(sorted(devices))) if devices else None

    def _claim(self, names: tuple[str, ...]) -> SpecialClaim:
        found = self._claims.get(names)
        if found is None:
            found = self._claims[names] = _special_claim(self._pod, names, self._classes)
        return found


def extended_requests(
    pod: PodInfo, resources: ResourceColumns, classes: ExtendedResources
) -> ExtendedResourceRequests | None:
    """Return the extended resources that `pod` requests.

    Returns None if no DeviceClass is mapped to any of them.

    upstream: preFilterExtendedResources, hasDeviceClassMappedExtendedResource
    """
    if not classes:
        return None
    names = ((resources.names[c], c) for c, _ in pod.shape.wanted if c >= FIRST_SCALAR)
    columns = {name: column for name, column in names if may_be_devices(name)}
    if all(classes.class_of(name) is None for name in columns):
        return None
    return ExtendedResourceRequests(pod.pod, columns, classes)


# --- requests and mappings ---------------------------------------------------------------------


def _special_claim(pod: Pod, names: Sequence[str], classes: ExtendedResources) -> SpecialClaim:
    """Build the claim for the extended resources `names` of `pod`.

    upstream: createRequestsAndMappings
    """
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for name in names:
        own = _ResourceRequests(pod, name, classes.class_of(name) or "")
        requests += own.requests
        mappings += own.mappings
    requests.sort(key=lambda request: request.name)
    meta = ObjectMeta(
        name=NAME_IN_MEMORY, namespace=pod.metadata.namespace, uid=f"{pod.metadata.uid}-extended"
    )
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests)))
    return SpecialClaim(ResourceClaim(metadata=meta, spec=spec), tuple(mappings))


class _ResourceRequests:
    """The device requests for one resource, and which of these requests each container uses."""

    def __init__(self, pod: Pod, resource: str, class_name: str) -> None:
        self._resource = resource
        self._class_name = class_name
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        init_count = len(pod.spec.init_containers)
        short = [i for i in range(init_count) if containers[i].restart_policy != "Always"]
        lasting: list[DeviceRequest | None] = [None] * len(containers)
        self.mappings: list[ContainerExtendedResourceRequest] = []
        for i, container in enumerate(containers):
            if i not in short:
                lasting[i] = self._add(i, container, ())
        first = len(self.mappings)
        passing = [self._add(i, containers[i], lasting[i:]) for i in short]
        largest = self._share_largest([one for one in passing if one is not None], first)
        self.requests = [one for one in (largest, *lasting) if one is not None]

    def _add(
        self, index: int, container: Container, reusable: Sequence[DeviceRequest | None]
    ) -> DeviceRequest | None:
        """Return a request for the devices that the container needs beyond those of `reusable`.

        `reusable` are requests of other containers; the container may use their devices. Returns
        None if the container needs no further devices. Adds a mapping to `self.mappings` for each
        request that the container uses.

        upstream: createResourceRequestAndMappings
        """
        wanted, covered = self._amount(container), 0
        if not wanted:
            return None
        for request in reusable:
            if request is not None and request.exactly is not None:
                covered += request.exactly.count
                self._map(container, request.name)
                if covered >= wanted:
                    return None
        place = sorted(container.resources.requests).index(self._resource)
        name = f"container-{index}-request-{place}"
        self._map(container, name)
        exactly = ExactDeviceRequest(device_class_name=self._class_name, count=wanted - covered)
        return DeviceRequest(name=name, exactly=exactly)

    def _amount(self, container: Container) -> int:
        text = container.resources.requests.get(self._resource)
        whole, rest = divmod(0 if text is None else parse_quantity(text).nano, NANOS_PER_UNIT)
        return 0 if rest else whole

    def _map(self, container: Container, request: str) -> None:
        self.mappings.append(
            ContainerExtendedResourceRequest(
                container_name=container.name, resource_name=self._resource, request_name=request
            )
        )

    def _share_largest(self, passing: Sequence[DeviceRequest], first: int) -> DeviceRequest | None:
        """Return the largest request in `passing`, and use it in place of the others.

        `passing` are the requests of the init containers that terminate before later containers
        start. `self.mappings[first:]` are the mappings of these containers. A mapping to a request
        in `passing` becomes a mapping to the largest request. Returns None if `passing` is empty.
        """
        if not passing:
            return None
        largest = max(passing, key=lambda one: 0 if one.exactly is None else one.exactly.count)
        names = {one.name for one in passing}
        self.mappings[first:] = [
            ContainerExtendedResourceRequest(
                container_name=one.container_name,
                resource_name=one.resource_name,
                request_name=largest.name if one.request_name in names else one.request_name,
            )
            for one in self.mappings[first:]
        ]
        return largest


# --- the API object ----------------------------------------------------------------------------


def named_in_api(special: SpecialClaim, pod: Pod) -> SpecialClaim:
    """Return `special` with the name that the claim will have in the API, and without a UID.

    In upstream, the API server generates a random name suffix. Fairlead derives the suffix from the
    pod's UID and resourceVersion.
    """
    meta = pod.metadata
    digest = hashlib.sha256(f"{meta.uid}/{meta.resource_version}".encode()).digest()
    suffix = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:5])
    named = ObjectMeta(name=f"{_base(pod)[:_NAME_MAX]}{suffix}", namespace=meta.namespace)
    return SpecialClaim(structs.replace(special.claim, metadata=named), special.mappings)


def is_special_claim_of(claim: ResourceClaim, pod: Pod) -> bool:
    """Return whether the scheduler created `claim` for the extended resources of `pod`."""
    meta = claim.metadata
    owners = meta.owner_references
    return meta.annotations.get(CLAIM_ANNOTATION) == "true" and any(
        one.controller and one.uid == pod.metadata.uid for one in owners
    )


def creation_of(
    special: SpecialClaim, allocation: ClaimAllocation, pod: Pod, now: Instant
) -> Writes:
    """Return the commands that create the claim and store its name in the status of `pod`.

    upstream: dynamicresources.go: bindClaim, patchPodExtendedResourceClaimStatus
    """
    meta = pod.metadata
    target = claim_ref(special.claim)
    consumer = ClaimConsumer(resource="pods", name=meta.name, uid=meta.uid)
    written = as_json(with_timestamp(allocation, now))
    status = {"allocation": written, "reservedFor": [as_json(consumer)]}
    shown = {
        "requestMappings": [as_json(one) for one in special.mappings],
        "resourceClaimName": target.name,
    }
    return (
        CreateObject(_manifest_of(special, pod)),
        PatchObject(target, {"metadata": {"finalizers": [FINALIZER]}}),
        PatchStatus(target, status),
        PatchStatus(
            ObjectRef("Pod", meta.namespace, meta.name, meta.uid),
            {"extendedResourceClaimStatus": shown},
        ),
    )


def deletion_of(claim: ResourceClaim) -> Writes:
    """Return commands that remove the finalizer and delete the claim (upstream: deleteClaim)."""
    others = [one for one in claim.metadata.finalizers if one != FINALIZER]
    target = claim_ref(claim)
    return (
        PatchObject(target, {"metadata": {"finalizers": others or None}}),
        DeleteObject(target, why="left over from an earlier attempt"),
    )


def _manifest_of(special: SpecialClaim, pod: Pod) -> dict[str, Any]:
    """Return the special claim as JSON (upstream: createExtendedResourceClaimInAPI)."""
    meta = pod.metadata
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": special.claim.metadata.name,
            "generateName": _base(pod),
            "namespace": meta.namespace,
            "annotations": {CLAIM_ANNOTATION: "true"},
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": meta.name,
                    "uid": meta.uid,
                    "controller": True,
                }
            ],
        },
        "spec": {"devices": {"requests": list(_request_manifests(special.claim))}},
    }


def _base(pod: Pod) -> str:
    return f"{pod.metadata.name}-extended-resources-"


def _request_manifests(claim: ResourceClaim) -> Iterator[dict[str, Any]]:
    for request in claim.spec.devices.requests:
        assert request.exactly is not None
        exactly = {
            "deviceClassName": request.exactly.device_class_name,
            "allocationMode": request.exactly.allocation_mode,
            "count": request.exactly.count,
        }
        yield {"name": request.name, "exactly": exactly}
