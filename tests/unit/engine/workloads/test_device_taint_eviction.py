"""DeviceTaintEviction: which pods lose their tainted devices, and when.

The cases follow upstream's device_taint_eviction.go (claimEvictionTime, podEvictionTime,
handleSliceChange, addConditionAndDeletePod).
"""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.command import DeleteObject, PatchStatus, RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.core.stimulus import (
    CommandFailed,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
)
from fairlead.engine.workloads.device_taint_eviction import DeviceTaintEviction
from fairlead.testing.device_builders import DRIVER, make_resource_claim, make_slice, wanting

START = seconds(1_767_225_600)


def pod(name="p", claim="c", node="a", **meta):
    metadata = {"name": name, "namespace": "default", "uid": f"u-{name}", **meta}
    spec = {"containers": [{"name": "x"}], "nodeName": node, **wanting(claim)}
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
    """A controller that knows these objects, and what it did at once."""
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
        ((tolerating(effect=""),), [taint()], 0),  # the effect must be given
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
def test_when_a_pod_is_evicted(tolerations, taints, after_s):
    """Counted from when the taint was added; None is never."""
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
def test_pods_that_stay(objects):
    """Only placed pods that use a tainted device are evicted."""
    assert seen(devices(taint()), *objects)[1] == []


def test_a_taint_that_appears_and_goes():
    """The eviction is cancelled, with an event."""
    controller, commands = seen(devices(), claim("c", tolerating(60)), pod())
    assert commands == []
    assert controller.handle(ObjectChanged(devices(taint())), START) == []
    (event,) = controller.handle(ObjectChanged(devices()), START + seconds(10))
    assert event.note == "Cancelling deletion"
    assert controller.handle_deadline(START + seconds(60)) == []


def test_only_the_newest_generation_of_a_pool_counts():
    """Older slices are out of date; when they are all there is, they count again."""
    new = devices(generation=2, name="new")
    controller, commands = seen(devices(taint(), name="old"), new, claim(), pod())
    assert commands == []
    assert deleted(controller.handle(ObjectDeleted(new), START)) == ["p"]


def test_a_taint_without_a_time_counts_from_when_it_was_seen():
    """Of its own device."""
    bare = {"key": "broken", "effect": "NoExecute"}
    controller, _ = seen(devices(), claim("c", tolerating(60)), pod())
    controller.handle(ObjectChanged(devices(bare)), START + seconds(5))
    controller.handle(ObjectChanged(devices(bare)), START + seconds(9))
    assert controller.next_deadline() == START + seconds(65)


def test_a_deletion_that_fails_is_tried_again():
    """After a second, unless the pod is gone."""
    controller, commands = seen(devices(taint()), claim(), pod())
    failed = CommandFailed(commands[-1], FailureReason.NOT_FOUND, "gone")
    controller.handle(failed, START)
    assert controller.next_deadline() is None
    controller.handle(CommandFailed(commands[-1], FailureReason.FORBIDDEN, "no"), START)
    assert deleted(controller.handle_deadline(START + seconds(1))) == ["p"]
