"""DynamicResources and NodeResourcesFit: extended resources that DeviceClasses back.

The expected requests and mappings follow upstream's extendeddynamicresources.go
(createRequestsAndMappings, filterExtendedResources), the verdicts its noderesources/fit.go
(shouldDelegateResourceToDRA, isSchedulableAfterDeviceClassEvent).
"""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import DeviceClass, ResourceClaim
from fairlead.engine.core.command import CreateObject, DeleteObject
from fairlead.engine.core.status import Code
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.plugins.dynamic_resources.extended_resource_claim import extended_requests
from fairlead.testing.device_builders import (
    make_device_class,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)

GPU = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"


def gpu_class(name="gpu", resource=GPU, created="2026-01-01T00:00:00Z"):
    metadata = {"name": name, "creationTimestamp": created}
    return decode_as(
        DeviceClass, {"metadata": metadata, "spec": {"extendedResourceName": resource}}
    )


def container(name="c", restart=None, **requests):
    whole = {"name": name, "resources": {"requests": requests}}
    return whole | ({"restartPolicy": restart} if restart else {})


@pytest.fixture
def plugin(scene):
    """Two nodes: `a` has two devices, `b` lists the resource itself."""
    scene.node("a")
    scene.node("b")
    node = scene.table.find("b").node
    room = {**node.status.allocatable, GPU: "1"}
    metadata = {"name": "b"}
    scene.put(
        {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": room}}
    )
    scene.tell(make_slice("a", ["gpu-0", "gpu-1"]))
    return scene.plugin("DynamicResources")


def asks(count, resource=GPU):
    return {"containers": [container(**{resource: str(count)})]}


def both(scene, pod):
    """Return the reasons of NodeResourcesFit, or else of DynamicResources, for each node."""
    plugin = scene.plugin("DynamicResources")
    fits = scene.verdicts(scene.plugin("NodeResourcesFit"), pod, CycleState())
    found = scene.verdicts(plugin, pod, scene.started(plugin, pod))
    return {node: reason or found[node] for node, reason in fits.items()}


def test_devices_provide_a_resource_that_the_node_does_not_list(scene, plugin):
    """On the node that lists it, its own amount counts."""
    scene.tell(gpu_class())
    assert both(scene, scene.incoming(**asks(1))) == {"a": "", "b": ""}
    assert both(scene, scene.incoming(**asks(2))) == {"a": "", "b": f"Insufficient {GPU}"}
    assert both(scene, scene.incoming(**asks(3)))["a"] == "cannot allocate all claims"


def test_the_name_of_a_class_is_a_resource(scene, plugin):
    """The name is deviceclass.resource.kubernetes.io/<class>; no field is needed."""
    scene.tell(make_device_class())
    pod = scene.incoming(**asks(1, IMPLICIT))
    scene.table.widen()
    found = both(scene, pod)
    assert found == {"a": "", "b": "cannot allocate all claims"}


def test_without_a_device_class_the_node_provides_the_resource(scene, plugin):
    """An added or deleted class changes the cached result of a node."""
    pod = scene.incoming(**asks(1))
    fit = scene.plugin("NodeResourcesFit")
    position = scene.table.node_log.position
    assert scene.verdicts(fit, pod, CycleState()) == {"a": f"Insufficient {GPU}", "b": ""}
    one = gpu_class()
    scene.tell(one)
    assert scene.table.node_log.since(position) is not None
    assert sorted(scene.table.node_log.since(position)) == [0, 1]
    assert scene.verdicts(fit, pod, CycleState()) == {"a": "", "b": ""}
    scene.untell(one)
    assert scene.verdicts(fit, pod, CycleState()) == {"a": f"Insufficient {GPU}", "b": ""}


def test_a_resource_without_device_class_and_node_capacity(scene, plugin):
    """The message is that of either plugin."""
    scene.tell(gpu_class())
    pod = scene.incoming(containers=[container(**{GPU: "1", "example.com/other": "1"})])
    state = scene.started(plugin, pod)
    answer = plugin.filter(state, pod, scene.table.find("a"))
    assert answer.message == "cannot fit resource"
    assert answer.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_the_later_of_two_classes_provides_the_resource(scene, plugin):
    """Of two classes of equal age, the first by name counts (spec.extendedResourceName)."""
    extended = scene.cluster.devices.extended
    scene.tell(gpu_class("old"), gpu_class("new", created="2026-02-01T00:00:00Z"))
    assert extended.class_of(GPU) == "new"
    scene.tell(gpu_class("new-too", created="2026-02-01T00:00:00Z"))
    assert extended.class_of(GPU) == "new"
    assert extended.class_of("deviceclass.resource.kubernetes.io/old") == "old"
    scene.untell(gpu_class("new"), gpu_class("new-too"))
    assert extended.class_of(GPU) == "old"


# --- requests ----------------------------------------------------------------------------------


def requests_of(scene, **spec):
    """Return the counts of the special claim on node `a` by request, and the mappings."""
    pod = scene.incoming(**spec)
    classes = scene.cluster.devices.extended
    special = extended_requests(pod, scene.table.resources, classes).claim_for(
        scene.table.find("a")
    )
    counts = {one.name: one.exactly.count for one in special.claim.spec.devices.requests}
    return counts, [(one.container_name, one.request_name) for one in special.mappings]


def test_every_container_has_its_own_request(scene, plugin):
    """The request's name has the indexes of the container and of the resource (sorted by name)."""
    scene.tell(gpu_class())
    containers = [
        container("x", cpu="1", **{GPU: "2"}),
        container("y"),
        container("z", **{GPU: "1"}),
    ]
    counts, mappings = requests_of(scene, containers=containers)
    assert counts == {"container-0-request-1": 2, "container-2-request-0": 1}
    assert mappings == [("x", "container-0-request-1"), ("z", "container-2-request-0")]


def test_init_containers_reuse_devices_of_later_containers(scene, plugin):
    """i needs 3 and j 4; x and y have 2, and one request of 2 covers the rest of both."""
    scene.tell(gpu_class())
    init = [container("i", **{GPU: "3"}), container("j", **{GPU: "4"})]
    containers = [container("x", **{GPU: "1"}), container("y", **{GPU: "1"})]
    counts, mappings = requests_of(scene, initContainers=init, containers=containers)
    lasting = ["container-2-request-0", "container-3-request-0"]
    assert counts == {"container-1-request-0": 2, **dict.fromkeys(lasting, 1)}
    assert mappings == [
        ("x", lasting[0]),
        ("y", lasting[1]),
        *(("i", name) for name in (*lasting, "container-1-request-0")),
        *(("j", name) for name in (*lasting, "container-1-request-0")),
    ]


def test_devices_of_sidecars_are_not_reused(scene, plugin):
    """A sidecar has its own request; an init container after it does not reuse it."""
    scene.tell(gpu_class())
    init = [container("side", "Always", **{GPU: "1"}), container("i", **{GPU: "1"})]
    counts, mappings = requests_of(scene, initContainers=init, containers=[container()])
    assert counts == {"container-0-request-0": 1, "container-1-request-0": 1}
    assert mappings == [("side", "container-0-request-0"), ("i", "container-1-request-0")]


# --- bindings ----------------------------------------------------------------------------------


def test_the_writes_of_a_special_claim(scene, plugin):
    """The claim, its finalizer, its allocation, and its name in the pod's status."""
    scene.tell(gpu_class())
    pod = scene.pod("p", **asks(1))
    state = scene.started(plugin, pod)
    assert plugin.filter(state, pod, scene.table.find("a")) is None
    assert plugin.reserve(state, pod, "a") is None
    create, protect, status, pod_status = plugin.pre_bind(state, pod, "a").commands
    assert isinstance(create, CreateObject)
    meta = create.manifest["metadata"]
    assert meta["name"].startswith("p-extended-resources-")
    assert meta["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    request = {"name": "container-0-request-0", "exactly": exactly}
    assert create.manifest["spec"] == {"devices": {"requests": [request]}}
    assert protect.target.name == status.target.name == meta["name"]
    (result,) = status.fields["allocation"]["devices"]["results"]
    assert (result["request"], result["device"]) == ("container-0-request-0", "gpu-0")
    assert status.fields["reservedFor"] == [{"resource": "pods", "name": "p", "uid": pod.uid}]
    mapping = {"containerName": "c", "resourceName": GPU, "requestName": "container-0-request-0"}
    assert pod_status.fields["extendedResourceClaimStatus"] == {
        "requestMappings": [mapping],
        "resourceClaimName": meta["name"],
    }


def test_the_special_claim_of_a_pod_that_is_not_bound_is_deleted(scene, plugin):
    """The claim is deleted if it has been created."""
    scene.tell(gpu_class())
    pod = scene.pod("p", **asks(1))
    state = scene.started(plugin, pod)
    assert plugin.filter(state, pod, scene.table.find("a")) is None
    assert plugin.reserve(state, pod, "a") is None
    create, *_ = plugin.pre_bind(state, pod, "a").commands
    assert plugin.release_commands(state, pod, "a") == ()
    name = create.manifest["metadata"]["name"]
    scene.tell(make_resource_claim(name))
    unprotect, delete = plugin.release_commands(state, pod, "a")
    assert (unprotect.target.name, delete.target.name) == (name, name)
    plugin.unreserve(state, pod, "a")
    assert plugin.release_commands(state, pod, "a") == ()


def test_devices_of_a_special_claim_are_in_use_during_its_creation(scene, plugin):
    """The assumption ends with the allocation in the API, or with `unreserve`."""
    scene.tell(gpu_class())
    pod = scene.pod("p", **asks(1))
    state = scene.started(plugin, pod)
    plugin.reserve(state, pod, "a")
    manifest = dict(plugin.pre_bind(state, pod, "a").commands[0].manifest)
    created = {**manifest, "metadata": {**manifest["metadata"], "uid": "made"}}
    taken = (make_slice("a").spec.driver, "a", "gpu-0")
    scene.put(created)
    assert scene.cluster.devices.is_taken(taken)
    plugin.unreserve(state, pod, "a")
    assert not scene.cluster.devices.is_taken(taken)


def test_an_earlier_special_claim_is_deleted_first(scene, plugin):
    """The pod waits for its deletion; the pod's other claims are kept."""
    scene.tell(gpu_class())
    pod = scene.pod("p", **asks(1))
    stale = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": "left",
            "namespace": "default",
            "uid": "left",
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [{"kind": "Pod", "uid": pod.uid, "controller": True}],
            "finalizers": ["resource.kubernetes.io/delete-protection"],
        },
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
    }
    scene.put(stale)
    state = scene.started(plugin, pod)
    for node in scene.table.nodes():
        assert plugin.filter(state, pod, node).message == "cannot schedule extended resource claim"
    answer = plugin.post_filter(state, pod, None)
    assert answer.status.message == "deletion of ResourceClaim completed"
    unprotect, delete = answer.commands
    assert unprotect.patch == {"metadata": {"finalizers": None}}
    assert isinstance(delete, DeleteObject)
    assert delete.target.name == "left"
    gone = decode_as(ResourceClaim, stale)
    event = ClusterEvent(EventKind.RESOURCE_CLAIM_DELETE, gone, None)
    assert plugin.is_woken_by(pod, event)
    assert not plugin.is_woken_by(scene.pod("q", **asks(1)), event)
    scene.delete(stale)
    assert plugin.filter(scene.started(plugin, pod), pod, scene.table.find("a")) is None


def test_a_pod_with_a_claim_and_an_extended_resource_gets_both(scene, plugin):
    """From the same devices, none twice."""
    scene.tell(gpu_class(), make_resource_claim("c"))
    pod = scene.pod("p", **asks(1), **make_pod_resource_claims("c"))
    state = scene.started(plugin, pod)
    assert plugin.filter(state, pod, scene.table.find("a")) is None
    plugin.reserve(state, pod, "a")
    commands = plugin.pre_bind(state, pod, "a").commands
    allocations = [
        c.fields["allocation"] for c in commands if "allocation" in getattr(c, "fields", {})
    ]
    devices = [one["devices"]["results"][0]["device"] for one in allocations]
    assert devices == ["gpu-0", "gpu-1"]
    plugin.unreserve(state, pod, "a")
    more = scene.incoming("q", **asks(2), **make_pod_resource_claims("c"))
    state = scene.started(plugin, more)
    found = [plugin.filter(state, more, node).message for node in scene.table.nodes()]
    assert found == ["cannot allocate all claims"] * 2


@pytest.mark.parametrize(
    ("old", "new", "resource", "woken"),
    [
        (None, gpu_class(), GPU, True),
        (None, gpu_class(resource="example.com/x"), GPU, False),
        (None, make_device_class(), IMPLICIT, True),
        (gpu_class(), gpu_class(), GPU, False),
        (make_device_class(), gpu_class(), GPU, True),
        (make_device_class(), gpu_class(), IMPLICIT, False),
    ],
)
def test_which_device_classes_wake_a_pod_that_lacks_a_resource(scene, old, new, resource, woken):
    """A class wakes the pod if it newly provides the resource."""
    kind = EventKind.DEVICE_CLASS_ADD if old is None else EventKind.DEVICE_CLASS_UPDATE
    event = ClusterEvent(kind, old, new)
    pod = scene.incoming(**asks(1, resource))
    assert scene.plugin("NodeResourcesFit").is_woken_by(pod, event) is woken


def test_an_init_container_that_later_containers_cover_has_no_request(scene, plugin):
    """It uses the devices of the first containers that suffice."""
    scene.tell(gpu_class())
    init = [container("i", **{GPU: "1"})]
    containers = [container("x", **{GPU: "2"}), container("y", **{GPU: "1"})]
    counts, mappings = requests_of(scene, initContainers=init, containers=containers)
    assert counts == {"container-1-request-0": 2, "container-2-request-0": 1}
    assert ("i", "container-1-request-0") in mappings
    assert ("i", "container-2-request-0") not in mappings


@pytest.mark.parametrize(("of_class", "woken"), [([gpu_class()], True), ([], False)])
def test_node_changes_wake_pods_that_need_devices(scene, plugin, of_class, woken):
    """Any change wakes a pod whose resource is provided by devices, but not by the node."""
    scene.tell(*of_class)
    pod = scene.incoming(**asks(1))
    node = scene.table.find("a").node
    event = ClusterEvent(EventKind.NODE_ALLOCATABLE, node, node)
    assert scene.plugin("NodeResourcesFit").is_woken_by(pod, event) is woken
