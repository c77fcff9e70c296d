"""Which pods a kubelet resizes, and its message about a deferred resize."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node, Pod
from fairlead.api.pods.requests import pod_requests
from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.engine.core.command import PatchStatus, RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import ObjectChanged
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.kubelet.pod_admission import PodRejection
from fairlead.engine.kubelet.pod_resize import (
    allocated_pod,
    deferral_note,
    deferral_of,
    deferred,
    is_resize,
)
from fairlead.engine.kubelet.pod_workers import PodWorkers
from fairlead.engine.state.cluster import Cluster
from fairlead.testing.builders import make_pod


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


def test_a_pod_completes_after_its_resize_is_deferred_again():
    """The second deferral has the same message, so the kubelet does not write it."""
    cluster = Cluster()
    workers = PodWorkers(KubeletConfig(), lambda _: True, cluster)
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "2", "pods": "9"}}}
    cluster.apply(ObjectChanged(decode_as(Node, node)))
    has = {"name": "main", "allocatedResources": {"cpu": "1"}}
    status = {"containerStatuses": [has | {"resources": {"requests": {"cpu": "1"}}}]}
    pods = [
        make_pod("a", node="n", requests=wanted, status=status, annotations={RUN_DURATION: "7s"})
        for wanted in ({"cpu": "1"}, {"cpu": "3"}, {"cpu": "3"}, {"cpu": "3", "memory": "1"})
    ]
    written = []
    for one in pods:  # the third shows the effect of the status patch
        cluster.apply(ObjectChanged(one))
        workers.observe(one, 0, 0)
        written.append([type(command) for command in workers.act(0)])
    assert written == [[], [RecordEvent, PatchStatus], [], []]
    [completed] = workers.act(seconds(7))
    assert completed.fields["phase"] == "Succeeded"
