"""DeviceTaintEviction: which pods lose their tainted devices, and when.

The cases follow upstream's device_taint_eviction.go (claimEvictionTime, podEvictionTime,
handleSliceChange, addConditionAndDeletePod).
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.codec import decode, decode_as
from fairlead.api.objects import DeviceTaintRuleStatus
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.command import ApplyStatus, DeleteObject, PatchStatus, RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
)
from fairlead.engine.workloads.devices.device_taint_eviction import DeviceTaintEviction
from fairlead.testing.device_builders import (
    DRIVER,
    make_device_taint_rule,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)

START = seconds(1_767_225_600)


def pod(name="p", claim="c", node="a", **meta):
    metadata = {"name": name, "namespace": "default", "uid": f"u-{name}", **meta}
    spec = {"containers": [{"name": "x"}], "nodeName": node, **make_pod_resource_claims(claim)}
    return decode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def claim(name="c", *tolerations, device="gpu-0", users=("u-p",)):
    result = {"request": "r", "driver": DRIVER, "pool": "a", "device": device}
    result["tolerations"] = list(tolerations)
    consumers = [{"resource": "pods", "name": uid[2:], "uid": uid} for uid in users]
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": consumers}
    return make_resource_claim(name, status=status)


def taint(effect="NoExecute", at=START, key="broken"):
    return {"key": key, "effect": effect, "timeAdded": format_timestamp(at)}


def devices(*taints, name="", generation=1):
    tainted = {"name": "gpu-0", "taints": list(taints)}
    return make_slice("a", [tainted, "gpu-1"], name=name, generation=generation)


def tolerating(seconds_=None, effect="NoExecute", key="broken"):
    limit = {} if seconds_ is None else {"tolerationSeconds": seconds_}
    return {"key": key, "operator": "Exists", "effect": effect} | limit


def seen(*objects):
    """Return a controller that has received these objects, and its first commands."""
    controller = DeviceTaintEviction(SilentReporter())
    return controller, controller.handle(ObjectsLoaded(list(objects)), START)


def deleted(commands):
    return [one.target.name for one in commands if isinstance(one, DeleteObject)]


@pytest.mark.parametrize(
    ("tolerations", "taints", "after_s"),
    [
        ((), [taint()], 0),
        ((), [taint("NoSchedule")], None),
        ((), [taint("None")], None),
        ((tolerating(),), [taint()], None),
        ((tolerating(effect="NoSchedule"),), [taint()], 0),
        ((tolerating(effect=""),), [taint()], 0),  # the effect is required
        ((tolerating(key="other"),), [taint()], 0),
        ((tolerating(60),), [taint()], 60),
        ((tolerating(60), tolerating(30)), [taint()], 30),
        ((tolerating(60), tolerating()), [taint()], None),
        ((tolerating(-5),), [taint()], 0),
        ((tolerating(60),), [taint(at=START - seconds(20))], 40),
        ((tolerating(60),), [taint(), taint(key="other")], 0),
        ((tolerating(60), tolerating(20, key="other")), [taint(), taint(key="other")], 20),
    ],
)
def test_the_time_of_the_eviction_of_a_pod(tolerations, taints, after_s):
    """The time counts from when the taint was added; None means never."""
    controller, commands = seen(devices(*taints), claim("c", *tolerations), pod())
    if after_s == 0:
        assert deleted(commands) == ["p"]
        return
    assert commands == []
    expected = None if after_s is None else START + seconds(after_s)
    assert controller.next_deadline() == expected
    if expected is not None:
        assert controller.handle_deadline(expected - 1) == []
        assert deleted(controller.handle_deadline(expected)) == ["p"]


def test_what_an_eviction_writes():
    """An event, the condition DisruptionTarget, and the deletion, once."""
    controller, (event, condition, deletion) = seen(devices(taint()), claim(), pod())
    assert isinstance(event, RecordEvent)
    assert (event.reason, event.note) == ("DeviceTaintManagerEviction", "Marking for deletion")
    assert isinstance(condition, PatchStatus)
    assert condition.conditions[0].reason == "DeletionByDeviceTaintManager"
    assert deletion.target.uid == "u-p"
    assert controller.handle(ObjectChanged(pod(labels={"a": "b"})), START) == []


@pytest.mark.parametrize(
    "objects",
    [
        (claim(), pod(node="")),
        (claim(device="gpu-1"), pod()),
        (claim(users=("u-other",)), pod()),
        (claim(), pod(deletionTimestamp="2026-01-01T00:00:00Z")),
        (claim("d"), pod()),
    ],
    ids=["not placed", "another device", "not reserved for it", "terminating", "another claim"],
)
def test_pods_that_are_not_evicted(objects):
    """Only placed pods that use a tainted device are evicted."""
    assert seen(devices(taint()), *objects)[1] == []


def test_the_eviction_is_cancelled_when_the_taint_is_removed():
    """The eviction is cancelled, with an event."""
    controller, commands = seen(devices(), claim("c", tolerating(60)), pod())
    assert commands == []
    assert controller.handle(ObjectChanged(devices(taint())), START) == []
    (event,) = controller.handle(ObjectChanged(devices()), START + seconds(10))
    assert event.note == "Cancelling deletion"
    assert controller.handle_deadline(START + seconds(60)) == []


def test_only_the_newest_generation_of_a_pool_counts():
    """Older slices are ignored, unless the pool has no others."""
    new = devices(generation=2, name="new")
    controller, commands = seen(devices(taint(), name="old"), new, claim(), pod())
    assert commands == []
    assert deleted(controller.handle(ObjectDeleted(new), START)) == ["p"]


def test_a_taint_without_a_time_counts_from_when_it_was_seen():
    """Only the taint of this device counts."""
    bare = {"key": "broken", "effect": "NoExecute"}
    controller, _ = seen(devices(), claim("c", tolerating(60)), pod())
    controller.handle(ObjectChanged(devices(bare)), START + seconds(5))
    controller.handle(ObjectChanged(devices(bare)), START + seconds(9))
    assert controller.next_deadline() == START + seconds(65)


def test_a_failed_deletion_is_repeated():
    """It is repeated after a second, unless the pod is deleted."""
    controller, commands = seen(devices(taint()), claim(), pod())
    failed = CommandFailed(commands[-1], FailureReason.NOT_FOUND, "gone")
    controller.handle(failed, START)
    assert controller.next_deadline() is None
    controller, commands = seen(devices(taint()), claim(), pod())
    controller.handle(CommandFailed(commands[-1], FailureReason.FORBIDDEN, "no"), START)
    assert deleted(controller.handle_deadline(START + seconds(1))) == ["p"]


# --- DeviceTaintRules -----------------------------------------------------------------------------


def seen_with_rules(*objects):
    """Return a controller that handles DeviceTaintRules, and its first commands."""
    controller = DeviceTaintEviction(SilentReporter(), has_rules=True)
    return controller, controller.handle(ObjectsLoaded(list(objects)), START)


def conditions(commands):
    """Return (status, reason, message) of each written condition."""
    found = [one.status["conditions"][0] for one in commands if isinstance(one, ApplyStatus)]
    return [(one["status"], one["reason"], one["message"]) for one in found]


def shown(rule, commands):
    """Return the rule with the status that `commands` write."""
    (update,) = [one for one in commands if isinstance(one, ApplyStatus)]
    return replace(rule, status=decode_as(DeviceTaintRuleStatus, update.status))


@pytest.mark.parametrize(
    ("selector", "evicted"),
    [
        ({}, ["p"]),
        ({"driver": DRIVER, "pool": "a", "device": "gpu-0"}, ["p"]),
        ({"driver": "other.example.com"}, []),
        ({"pool": "b"}, []),
        ({"device": "gpu-1"}, []),
    ],
)
def test_a_rule_evicts_the_pods_of_the_devices_it_selects(selector, evicted):
    """Its fields must all match; without fields it selects all devices."""
    rule = make_device_taint_rule(**selector)
    _, commands = seen_with_rules(rule, devices(), claim(), pod())
    assert deleted(commands) == evicted


def test_rules_count_only_where_the_gate_is_on():
    assert seen(make_device_taint_rule(), devices(), claim(), pod())[1] == []


def test_a_rule_without_a_selector_selects_nothing():
    rule = make_device_taint_rule()
    rule = replace(rule, spec=replace(rule.spec, device_selector=None))
    _, commands = seen_with_rules(rule, devices(), claim(), pod())
    assert deleted(commands) == []


def test_a_rule_evicts_from_devices_that_no_slice_lists():
    _, commands = seen_with_rules(make_device_taint_rule(pool="a"), claim(), pod())
    assert deleted(commands) == ["p"]


def test_tolerations_of_a_rules_taint_count_from_its_time():
    rule = make_device_taint_rule(time_added=format_timestamp(START - seconds(20)))
    controller, commands = seen_with_rules(rule, devices(), claim("c", tolerating(60)), pod())
    assert deleted(commands) == []
    assert deleted(controller.handle_deadline(START + seconds(39))) == []
    assert deleted(controller.handle_deadline(START + seconds(40))) == ["p"]


def test_an_eviction_ends_with_its_rule():
    rule = make_device_taint_rule()
    controller, _ = seen_with_rules(rule, devices(), claim("c", tolerating(60)), pod())
    (event,) = controller.handle(ObjectDeleted(rule), START + seconds(5))
    assert event.note == "Cancelling deletion"
    assert controller.handle_deadline(START + seconds(60)) == []
    assert controller.next_deadline() is None


def test_the_condition_of_a_rule_that_evicts():
    """It counts the pods before they are evicted, and the evicted ones ten seconds later."""
    rule = make_device_taint_rule()
    controller, commands = seen_with_rules(rule, devices(), claim(), pod())
    assert isinstance(commands[0], ApplyStatus)
    assert conditions(commands) == [
        ("True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace.")
    ]
    controller.handle(CommandSucceeded(commands[-1]), START)
    controller.handle(ObjectDeleted(pod()), START)
    assert controller.handle(ObjectChanged(shown(rule, commands)), START) == []
    assert controller.next_deadline() == START + seconds(10)
    later = controller.handle_deadline(START + seconds(10))
    assert conditions(later) == [
        ("False", "Completed", "1 pod evicted since starting the controller.")
    ]
    assert controller.next_deadline() is None


def test_the_condition_is_written_at_most_every_ten_seconds():
    """A change of the rule's spec is written earlier."""
    rule = make_device_taint_rule()
    controller, commands = seen_with_rules(rule, devices(), claim("c", tolerating(60)), pod())
    controller.handle(ObjectChanged(shown(rule, commands)), START)
    second = pod("q", claim="d")
    controller.handle(ObjectChanged(claim("d", tolerating(60), users=("u-q",))), START)
    assert controller.handle(ObjectChanged(second), START + seconds(2)) == []
    (update,) = controller.handle_deadline(START + seconds(10))
    assert conditions([update])[0][2] == "2 pods need to be evicted in 1 namespace."


def test_the_effect_none_reports_what_no_execute_would_evict():
    """The condition is written once, and no pod is evicted."""
    rule = make_device_taint_rule(effect="None", pool="a")
    other = pod("q", claim="d", namespace="other")
    other_claim = claim("d", device="gpu-1", users=("u-q",))
    other_claim = replace(other_claim, metadata=replace(other_claim.metadata, namespace="other"))
    controller, commands = seen_with_rules(rule, devices(), claim(), pod(), other_claim, other)
    [(status, reason, message)] = conditions(commands)
    assert (status, reason) == ("False", "NoEffect")
    assert message == (
        "2 published devices selected. 2 allocated devices selected. 2 pods would be evicted in"
        " 2 different namespaces if the effect was NoExecute. This information will not be"
        " updated again. Recreate the DeviceTaintRule to trigger an update."
    )
    assert len(commands) == 1
    assert controller.next_deadline() is None


def test_a_rule_whose_effect_changes_to_no_execute():
    rule = make_device_taint_rule(effect="NoSchedule")
    controller, commands = seen_with_rules(rule, devices(), claim(), pod())
    assert conditions(commands) == [
        ("False", "OtherEffect", "Eviction only happens for the NoExecute effect.")
    ]
    rule = make_device_taint_rule(effect="NoExecute", generation=2)
    commands = controller.handle(ObjectChanged(rule), START + seconds(1))
    assert deleted(commands) == ["p"]


def test_the_state_of_deleted_taints_and_rules_is_dropped():
    """Otherwise a controller that runs for months would grow."""
    bare = {"key": "broken", "effect": "NoExecute"}
    rule, slice_ = make_device_taint_rule(time_added=""), devices(bare)
    controller, commands = seen_with_rules(rule, slice_, claim(), pod())
    controller.handle(CommandSucceeded(commands[-1]), START)
    for gone in (pod(), claim(), slice_, rule):
        controller.handle(ObjectDeleted(gone), START)
    controller.handle_deadline(START + seconds(10))
    held = {**vars(controller), **vars(controller._taints)}
    assert [name for name, value in held.items() if isinstance(value, dict) and value] == []


def test_a_taint_without_time_that_is_added_again_has_a_new_time():
    bare = {"key": "broken", "effect": "NoExecute"}
    controller, _ = seen(devices(bare), claim("c", tolerating(60)), pod())
    controller.handle(ObjectChanged(devices()), START + seconds(10))
    controller.handle(ObjectChanged(devices(bare)), START + seconds(100))
    assert deleted(controller.handle_deadline(START + seconds(100))) == []
    assert deleted(controller.handle_deadline(START + seconds(160))) == ["p"]
