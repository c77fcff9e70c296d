"""When a bound pod starts, ends and is removed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.api.pods.run_duration import RUN_DURATION, run_duration
from fairlead.engine.core.instant import seconds
from fairlead.engine.kubelet.annotation import annotation_problems
from fairlead.engine.kubelet.config import KubeletConfig, StopAfter, StopAfterShare
from fairlead.engine.kubelet.pod_lifecycle import (
    Act,
    NextAct,
    deletion_requested_at,
    next_act,
    removal_due,
)

NOW = seconds(1_000)


def pod(phase="Running", *, annotations=None, grace=None, deadline=None, terminating=False):
    metadata = {"name": "p", "namespace": "ns", "uid": "u", "annotations": annotations or {}}
    if terminating:
        metadata["deletionTimestamp"] = "1970-01-01T00:16:40Z"  # NOW
    if grace is not None:
        metadata["deletionGracePeriodSeconds"] = grace
    spec = {"nodeName": "n", "containers": [{"name": "c"}]}
    if deadline is not None:
        spec["activeDeadlineSeconds"] = deadline
    status = {"phase": phase}
    if phase == "Running":
        status["startTime"] = "1970-01-01T00:15:00Z"  # 900 s
    return decode_as(Pod, {"metadata": metadata, "spec": spec, "status": status})


def act_of(one, config=None):
    return next_act(
        one,
        bound_at=NOW,
        started_at=NOW,
        terminating_at=NOW,
        config=config or KubeletConfig(start_delay=seconds(0.647)),
    )


@pytest.mark.parametrize(
    ("case", "one", "expected"),
    [
        ("a pending pod starts", pod("Pending"), NextAct(Act.START, NOW + seconds(0.647))),
        ("a pod without a phase starts", pod(""), NextAct(Act.START, NOW + seconds(0.647))),
        ("a running pod runs for ever", pod(), None),
        ("a finished pod stays", pod("Failed"), None),
        ("an unknown pod stays", pod("Unknown"), None),
        (
            "a pod with a duration completes",
            pod(annotations={"fairlead.dev/run-duration": "1m30s"}),
            NextAct(Act.END, NOW + seconds(90), "completed"),
        ),
        (
            "a deadline counts from startTime",
            pod(deadline=120),
            NextAct(Act.END, seconds(900 + 120), "deadline"),
        ),
        (
            "the earlier of duration and deadline wins",
            pod(annotations={"fairlead.dev/run-duration": "5s"}, deadline=120),
            NextAct(Act.END, NOW + seconds(5), "completed"),
        ),
        (
            "a terminating pod goes away even before it started",
            pod("Pending", terminating=True, grace=7),
            NextAct(Act.REMOVE, NOW + seconds(7)),
        ),
    ],
)
def test_the_next_action_of_a_pod(case, one, expected):
    assert act_of(one) == expected, case


@pytest.mark.parametrize(
    ("case", "one", "config", "expected_s"),
    [
        ("the whole grace period", pod(terminating=True, grace=30), KubeletConfig(), 30),
        ("thirty seconds when none is written", pod(terminating=True), KubeletConfig(), 30),
        (
            "a share of it",
            pod(terminating=True, grace=30),
            KubeletConfig(stop=StopAfterShare(0.1)),
            3,
        ),
        (
            "a fixed time",
            pod(terminating=True, grace=30),
            KubeletConfig(stop=StopAfter(seconds(5))),
            5,
        ),
        (
            "never longer than the grace period",
            pod(terminating=True, grace=2),
            KubeletConfig(stop=StopAfter(seconds(5))),
            2,
        ),
        (
            "the pod's own annotation first",
            pod(terminating=True, grace=30, annotations={"fairlead.dev/stop-duration": "8s"}),
            KubeletConfig(stop=StopAfter(seconds(5))),
            8,
        ),
        (
            "then the object lingers",
            pod(terminating=True, grace=30),
            KubeletConfig(removal_delay=seconds(0.137)),
            30.137,
        ),
        ("at once without grace", pod(terminating=True, grace=0), KubeletConfig(), 0),
        ("at once when finished", pod("Succeeded", terminating=True), KubeletConfig(), 0),
    ],
)
def test_the_removal_of_a_terminating_pod(case, one, config, expected_s):
    assert removal_due(one, NOW, config) == NOW + seconds(expected_s), case


@pytest.mark.parametrize(
    ("field", "reason", "starts"),
    [
        ("containerStatuses", "ContainerCreating", True),
        ("containerStatuses", "PodInitializing", True),
        ("containerStatuses", "ImagePullBackOff", False),
        ("containerStatuses", "CreateContainerConfigError", False),
        ("initContainerStatuses", "CrashLoopBackOff", False),
    ],
)
def test_a_pod_whose_containers_failed_to_start_stays_pending(field, reason, starts):
    """Otherwise a stuck rollout would complete in a simulation."""
    waiting = {"name": "c", "state": {"waiting": {"reason": reason}}}
    one = decode_as(
        Pod, {"metadata": {"name": "p"}, "status": {"phase": "Pending", field: [waiting]}}
    )
    assert (act_of(one) is not None) == starts


def test_the_deletion_time_is_derived_from_a_loaded_pod():
    """deletionTimestamp is the end of the grace period."""
    assert deletion_requested_at(pod(terminating=True, grace=20)) == NOW - seconds(20)


@pytest.mark.parametrize("text", ["soon", "-5s", "", "10"])
def test_an_invalid_annotation_is_reported_and_ignored(text):
    one = pod(annotations={"fairlead.dev/run-duration": text})
    assert run_duration(one) is None
    (problem,) = annotation_problems(one)
    assert problem.startswith("metadata.annotations[fairlead.dev/run-duration]: ")
    assert repr(text) in problem


@given(
    grace=st.integers(0, 600),
    stop=st.one_of(
        st.integers(0, 900).map(lambda s: StopAfter(seconds(s))),
        st.floats(0, 1).map(StopAfterShare),
    ),
    own_s=st.none() | st.integers(0, 900),
)
def test_every_pod_is_removed_within_its_grace_period(grace, stop, own_s):
    """Removal falls between the request and the end of the grace period."""
    annotations = {} if own_s is None else {"fairlead.dev/stop-duration": f"{own_s}s"}
    one = pod(terminating=True, grace=grace, annotations=annotations)
    due = removal_due(one, NOW, KubeletConfig(stop=stop))
    assert NOW <= due <= NOW + seconds(grace)


@pytest.mark.parametrize(
    ("restart", "once", "listens"),
    [
        pytest.param("Never", (True,), True, id="kubectl run -i"),
        pytest.param("Never", (True, False), False, id="another container goes on"),
        pytest.param("Always", (True,), False, id="it would only begin anew"),
        pytest.param("Never", (), False, id="nobody there"),
    ],
)
def test_a_pod_that_waits_for_standard_input_ends_without_input(restart, once, listens):
    """Only if the kubelet is configured so; otherwise it runs like other pods."""
    containers = [
        {"name": f"c{at}", "stdin": True, "stdinOnce": one} for at, one in enumerate(once)
    ]
    spec = {"nodeName": "n", "restartPolicy": restart, "containers": containers}
    meta = {"name": "p", "namespace": "ns", "uid": "u"}
    one = decode_as(Pod, {"metadata": meta, "spec": spec, "status": {"phase": "Running"}})
    due = act_of(one, KubeletConfig(input_duration=seconds(2)))
    assert due == (NextAct(Act.END, NOW + seconds(2), "completed") if listens else None)
    assert act_of(one) is None


@pytest.mark.parametrize(
    ("restart", "annotation", "expected"),
    [
        ("Never", None, 5),
        ("OnFailure", None, 5),
        ("Always", None, None),
        ("Never", "9s", 9),
        ("Never", "forever", None),
    ],
)
def test_pods_that_end_by_themselves_end_after_the_job_duration(restart, annotation, expected):
    """An annotation of the pod takes precedence."""
    annotations = {} if annotation is None else {RUN_DURATION: annotation}
    spec = {"nodeName": "n", "restartPolicy": restart, "containers": [{"name": "c"}]}
    meta = {"name": "p", "namespace": "ns", "uid": "u", "annotations": annotations}
    one = decode_as(Pod, {"metadata": meta, "spec": spec, "status": {"phase": "Running"}})
    due = act_of(one, KubeletConfig(job_duration=seconds(5)))
    assert due == (
        None if expected is None else NextAct(Act.END, NOW + seconds(expected), "completed")
    )
    assert annotation_problems(one) == ()
