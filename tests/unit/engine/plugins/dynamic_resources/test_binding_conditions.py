"""DynamicResources: pods wait until their devices are ready to be bound.

The cases follow upstream's dynamicresources.go (PreBind, isPodReadyForBinding,
isClaimReadyForBinding, isClaimTimeout) and allocator_incubating.go (createNodeSelector).
"""

from __future__ import annotations

import pytest

from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.command import RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.status import Code
from fairlead.engine.plugins.dynamic_resources.binding_conditions import (
    has_timed_out,
    is_ready_for_binding,
)
from fairlead.engine.plugins.dynamic_resources.plugin import DynamicResources, DynamicResourcesArgs
from fairlead.testing.device_builders import (
    DRIVER,
    make_device,
    make_device_class,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)

START = seconds(1_767_225_600)
CONDITIONS = {"bindingConditions": ["attached"], "bindingFailureConditions": ["broken"]}


@pytest.fixture
def plugin(scene):
    """Two nodes; a device for both, which must be attached."""
    scene.node("a")
    scene.node("b")
    scene.cluster.now = START
    scene.tell(make_device_class())
    device = make_device("gpu-0") | CONDITIONS | {"bindsToNode": True}
    scene.tell(make_slice("", [device], spec={"allNodes": True}))
    return scene.plugin("DynamicResources")


def claim_with(*conditions, at=START, reserved_for=("u-p",)):
    """Return an allocated claim whose device has these (type, status) conditions."""
    result = {"request": "r", "driver": DRIVER, "pool": "shared", "device": "gpu-0"}
    shown = [
        {"type": name, "status": status, "reason": "R", "message": 'm "x"'}
        for name, status in conditions
    ]
    device = {"driver": DRIVER, "pool": "shared", "device": "gpu-0", "conditions": shown}
    allocation = {
        "devices": {"results": [result | CONDITIONS]},
        "allocationTimestamp": format_timestamp(at),
    }
    consumers = [{"resource": "pods", "name": "p", "uid": uid} for uid in reserved_for]
    status = {"allocation": allocation, "reservedFor": consumers}
    return make_resource_claim("c", status=status | ({"devices": [device]} if conditions else {}))


def test_an_allocation_has_binding_conditions_timestamp_and_node(scene, plugin):
    """A device with bindsToNode ties the claim to this node, although other nodes reach it."""
    scene.tell(make_resource_claim("c"))
    pod = scene.pod("p", **make_pod_resource_claims("c"))
    state = scene.started(plugin, pod)
    assert plugin.filter(state, pod, scene.table.find("b")) is None
    plugin.reserve(state, pod, "b")
    preparation = plugin.pre_bind(state, pod, "b")
    *_, write, event = preparation.commands
    allocation = write.fields["allocation"]
    assert allocation["allocationTimestamp"] == "2026-01-01T00:00:00Z"
    (result,) = allocation["devices"]["results"]
    assert {key: result[key] for key in CONDITIONS} == CONDITIONS
    (term,) = allocation["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchFields"][0]["values"] == ["b"]
    assert isinstance(event, RecordEvent)
    assert event.reason == "BindingConditionsPending"
    assert event.note == "waiting for binding conditions for device on node b"
    assert (preparation.interval, preparation.timeout) == (seconds(5), seconds(600))
    assert preparation.on_timeout == "device binding timeout: context deadline exceeded"
    assert plugin.is_prepared(state, pod, "b").code is Code.WAIT  # not shown by the API yet


@pytest.mark.parametrize(
    ("conditions", "later", "words"),
    [
        ((), 0, "wait"),
        ((("attached", "False"),), 0, "wait"),
        ((("attached", "True"),), 0, ""),
        ((("attached", "True"), ("broken", "False")), 0, ""),
        (
            (("broken", "True"),),
            0,
            'device binding failed: claim=c, reason=R, message="m \\"x\\""',
        ),
        ((("attached", "True"), ("broken", "True")), 0, "device binding failed: claim=c"),
        ((("attached", "False"),), 600, "wait"),  # not before the timeout is over
        ((("attached", "False"),), 601, "device binding timeout: claim=c"),
        ((("attached", "True"),), 601, ""),
    ],
)
def test_a_pod_is_bound_when_all_binding_conditions_are_true(
    scene, plugin, conditions, later, words
):
    """The pod is bound if no failure condition is True."""
    scene.tell(claim_with())
    pod = scene.pod("p", **make_pod_resource_claims("c"))
    state = scene.started(plugin, pod)
    plugin.reserve(state, pod, "a")
    assert plugin.pre_bind(state, pod, "a").commands[-1].reason == "BindingConditionsPending"
    scene.tell(claim_with(*conditions))
    scene.cluster.now = START + seconds(later)
    answer = plugin.is_prepared(state, pod, "a")
    if words == "wait":
        assert answer.code is Code.WAIT
    else:
        assert ("" if answer is None else answer.message).startswith(words)
        assert bool(answer) is bool(words)


def test_a_ready_claim_does_not_delay_the_binding(scene, plugin):
    """Only the reservation is written; as in upstream, the event is recorded anyway."""
    scene.tell(claim_with(("attached", "True"), reserved_for=()))
    pod = scene.pod("p", **make_pod_resource_claims("c"))
    state = scene.started(plugin, pod)
    plugin.reserve(state, pod, "a")
    preparation = plugin.pre_bind(state, pod, "a")
    write, event = preparation.commands
    assert set(write.fields) == {"reservedFor"}
    assert event.reason == "BindingConditionsPending"
    assert preparation.interval == 0
    assert plugin.is_prepared(state, pod, "a") is None


@pytest.mark.parametrize(
    ("conditions", "later", "given_up"),
    [
        ((("attached", "False"),), 600, False),
        ((("attached", "False"),), 601, True),
        ((("broken", "True"),), 0, True),
        ((("attached", "True"),), 601, False),
    ],
)
def test_a_claim_that_cannot_be_bound_is_deallocated(scene, plugin, conditions, later, given_up):
    """The next attempt rejects every node, and PostFilter deallocates the claim."""
    scene.tell(claim_with(*conditions))
    scene.cluster.now = START + seconds(later)
    pod = scene.pod("p", **make_pod_resource_claims("c"))
    state = scene.started(plugin, pod)
    found = scene.verdicts(plugin, pod, state)
    words = "resourceclaim not available on the node" if given_up else ""
    assert found == {"a": words, "b": words}
    answer = plugin.post_filter(state, pod, None)
    deallocated = answer.status.message == "deallocation of ResourceClaim completed"
    assert deallocated is given_up
    assert len(answer.commands) == given_up


def test_the_timeout_is_an_argument(scene, plugin):
    """The argument is bindingTimeout of DynamicResourcesArgs."""
    scene.tell(claim_with(("attached", "False")))
    scene.cluster.now = START + seconds(31)
    pod = scene.pod("p", **make_pod_resource_claims("c"))

    class Handle:
        cluster = scene.cluster

    short = DynamicResources(Handle(), DynamicResourcesArgs(binding_timeout="30s"))
    assert set(scene.verdicts(short, pod).values()) == {"resourceclaim not available on the node"}
    assert set(scene.verdicts(plugin, pod).values()) == {""}


def test_a_claim_without_an_allocation_is_neither_ready_nor_timed_out():
    """An allocation without a timestamp has not timed out either."""
    claim = make_resource_claim("c")
    assert not is_ready_for_binding(claim)
    assert not has_timed_out(claim, 0, START)
    result = {"request": "r", "driver": DRIVER, "pool": "shared", "device": "gpu-0"}
    status = {"allocation": {"devices": {"results": [result | CONDITIONS]}}}
    assert not has_timed_out(make_resource_claim("c", status=status), 0, START)


@pytest.mark.parametrize(("value", "is_ready"), [("True", True), ("False", False)])
def test_only_devices_with_binding_conditions_must_meet_them(value, is_ready):
    """The status need not name other devices, and conditions of other devices do not count."""

    def of(device, **more):
        return {"driver": DRIVER, "pool": "shared", "device": device, **more}

    def shown(device, status):
        return of(device, conditions=[{"type": "attached", "status": status}])

    results = [of("plain", request="r"), of("gpu-0", request="s", **CONDITIONS)]
    status = {"allocation": {"devices": {"results": results}}}
    status["devices"] = [shown("unused", "False"), shown("gpu-0", value)]
    assert is_ready_for_binding(make_resource_claim("c", status=status)) is is_ready


def test_a_claim_without_conditions_does_not_delay_another_claim(scene, plugin):
    """The pod is bound when the conditions of the other claim are True."""
    result = {"request": "r", "driver": DRIVER, "pool": "other", "device": "x"}
    used = {"allocation": {"devices": {"results": [result]}}}
    scene.tell(make_resource_claim("b", status=used), claim_with())
    pod = scene.pod("p", **make_pod_resource_claims("b", "c"))
    state = scene.started(plugin, pod)
    plugin.reserve(state, pod, "a")
    plugin.pre_bind(state, pod, "a")
    assert plugin.is_prepared(state, pod, "a").code is Code.WAIT
    scene.tell(claim_with(("attached", "True")))
    assert plugin.is_prepared(state, pod, "a") is None
