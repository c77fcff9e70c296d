"""Loaded pods without a pending action get their pod workers later, with the same effects."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.kubelet.pod_lifecycle import is_settled, next_act
from fairlead.engine.kubelet.pod_workers import PodWorkers
from fairlead.testing.builders import make_pod

LOADED_AT = seconds(1_800_000_000)
RESUMED_AT = LOADED_AT + seconds(60)
CONFIGS = (KubeletConfig(), KubeletConfig(applies_readiness_gates=True, job_duration=seconds(5)))


def pod(name, node, status, policy, annotation, *, ends=False):
    """A pod whose uid depends on its node and phase."""
    phase, ready = status
    conditions = [{"type": "Ready", "status": ready, "reason": "x"}] if ready else []
    made = make_pod(
        name,
        uid=f"{name}-{node}-{phase}",
        node=node,
        terminating=ends,
        spec={"restartPolicy": policy},
        status={"phase": phase, "conditions": conditions, "startTime": "2026-01-01T00:00:00Z"},
    )
    annotations = {annotation: "7s"} if annotation else {}
    return replace(made, metadata=replace(made.metadata, annotations=annotations))


pods = st.builds(
    pod,
    st.sampled_from(("a", "b", "c", "d")),
    st.sampled_from(("n", "m", "")),
    st.tuples(
        st.sampled_from(("Running", "Running", "Pending", "Succeeded")),
        st.sampled_from(("True", "True", "False", "")),
    ),
    st.sampled_from(("Always", "Always", "Never")),
    st.sampled_from(("", "", RUN_DURATION, "other")),
    ends=st.sampled_from((False, False, True)),
)
calls = st.one_of(
    pods.map(lambda one: lambda workers: workers.observe(one, RESUMED_AT, RESUMED_AT)),
    pods.map(lambda one: lambda workers: workers.forget(one, RESUMED_AT)),
    st.tuples(st.sampled_from("nm"), st.booleans()).map(
        lambda one: lambda workers: workers.kubelet_resumed(one[0], RESUMED_AT, was_down=one[1])
    ),
)


def loaded(found, config):
    workers = PodWorkers(config, lambda _: True)
    for one in workers.load_settled(ObjectsLoaded(found), LOADED_AT):
        workers.observe(one, LOADED_AT, LOADED_AT)
    return workers


def seen(found, config):
    workers = PodWorkers(config, lambda _: True)
    for one in found:
        workers.observe(one, LOADED_AT, LOADED_AT)
    return workers


def acts(workers):
    """Return the commands until nothing is due."""
    found = []
    for _ in range(100):
        due = workers.next_due()
        if due is None:
            return found
        found.append((due, workers.act(due)))
    raise AssertionError(found)


def test_workers_are_created_for_pods_that_start_or_stop_on_running_nodes():
    """A pod whose end is due later runs as it should; nothing happens on a silent node."""
    running = ("Running", "True")
    cases = {
        "stops": (pod("stops", "n", running, "Always", "", ends=True), True),
        "starts": (pod("starts", "n", ("Pending", ""), "Always", ""), True),
        "runs": (pod("runs", "n", running, "Always", ""), False),
        "ends": (pod("ends", "n", running, "Never", ""), False),
        "silent": (pod("silent", "m", running, "Always", "", ends=True), False),
    }
    for name, (one, is_waiting) in cases.items():
        workers = PodWorkers(CONFIGS[1], lambda node: node == "n")
        workers.observe(one, LOADED_AT, LOADED_AT)
        assert workers.is_waiting() is is_waiting, name
        workers.forget(one, LOADED_AT)
        assert not workers.is_waiting(), name


@settings(max_examples=300)
@given(
    found=st.lists(pods, max_size=6, unique_by=lambda one: one.key),
    then=st.lists(calls, max_size=4),
    config=st.sampled_from(CONFIGS),
)
def test_workers_created_later_have_the_same_effects(found, then, config):
    both = [loaded(found, config), seen(found, config)]
    answers = [[call(workers) for call in then] for workers in both]
    assert answers[0] == answers[1]
    assert acts(both[0]) == acts(both[1])


@given(pods, st.sampled_from(CONFIGS))
def test_a_settled_pod_has_no_next_action(one, config):
    if is_settled(one, config):
        start = LOADED_AT
        assert (
            next_act(
                one,
                bound_at=start,
                started_at=start,
                terminating_at=start,
                ready_at=start,
                config=config,
            )
            is None
        )
