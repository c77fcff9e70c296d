"""Which pods a kubelet resizes, and its message about a deferred resize."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.api.pods.requests import pod_requests
from fairlead.engine.kubelet.pod_admission import PodRejection
from fairlead.engine.kubelet.pod_resize import (
    allocated_pod,
    deferral_note,
    deferral_of,
    deferred,
    is_resize,
)


def pod(*, wanted, allocated, conditions=()):
    """Return a pod whose container c has the requests `allocated`; None: they are not known."""
    row = {"name": "c"}
    if allocated is not None:
        row |= {"allocatedResources": allocated, "resources": {"requests": allocated}}
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"limits": {"cpu": "1"}}}
    return decode_as(
        Pod,
        {
            "metadata": {"name": "a", "generation": 3},
            "spec": {
                "containers": [{"name": "c", "resources": {"requests": wanted}}],
                "initContainers": [{"name": "i"}, sidecar],
            },
            "status": {"containerStatuses": [row], "conditions": list(conditions)},
        },
    )


@pytest.mark.parametrize(
    ("wanted", "allocated", "expected"),
    [
        pytest.param({"cpu": "2"}, {"cpu": "1"}, True, id="more than it has"),
        pytest.param({"cpu": "1"}, {}, True, id="requests where it had none"),
        pytest.param({"cpu": "1"}, {"cpu": "1"}, False, id="what it has"),
        pytest.param({"cpu": "1"}, None, False, id="not known what it has"),
    ],
)
def test_a_resize_requests_other_amounts_than_are_allocated(wanted, allocated, expected):
    assert is_resize(pod(wanted=wanted, allocated=allocated)) is expected


def test_an_allocated_pod_requests_what_it_has():
    found = allocated_pod(pod(wanted={"cpu": "2"}, allocated={"cpu": "1"}))
    assert pod_requests(found, existing=True) == {"cpu": 1000}


def test_a_deferred_resize_is_read_from_the_status():
    made = deferred(PodRejection("OutOfcpu", "no cpu"))
    row = {"type": made.type, "status": "True", "reason": made.reason, "message": "no cpu"}
    assert deferral_of(pod(wanted={}, allocated={}, conditions=[row])) == made
    row["reason"] = "Infeasible"
    assert deferral_of(pod(wanted={}, allocated={}, conditions=[row])) is None


def test_the_message_names_sidecars_and_containers():
    """As in pkg/kubelet/events/pod_resize_test.go: TestPodResizePendingMsg."""
    note = deferral_note(pod(wanted={"cpu": "2"}, allocated={}), PodRejection("x", "no cpu"))
    assert note == (
        'Pod resize Deferred: {"initContainers":[{"name":"s","resources":{"limits":{"cpu":"1"}}}],'
        '"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}],'
        '"generation":3,"error":"no cpu"}'
    )
