"""The number of replicas for a target, with pods that are missing, unready or not counted."""

import pytest

from fairlead.api.codec import decode
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.instant import seconds
from fairlead.engine.workloads.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.pod_group import (
    MeteredResource,
    MetricError,
    group_pods,
)
from fairlead.engine.workloads.horizontal_pod_autoscaler.replica_calculator import (
    Proposal,
    Tolerances,
    average_proposal,
    utilization_proposal,
)

NOW = seconds(1_000_000)
CONFIG = HorizontalPodAutoscalerConfig()
TENTH = Tolerances(0.1, 0.1)
CPU_OF_PODS = MeteredResource("cpu", "", has_load=False)


def pod(name, usage=None, *, phase="Running", ready=True, age_s=3600, ready_s=3600, **spec):
    """Return a pod that requests one core; `usage` is in milli, None for a pod without a metric."""
    annotations = {} if usage is None else {"fairlead.dev/usage": f"cpu={usage}m"}
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "lastTransitionTime": format_timestamp(NOW - seconds(ready_s)),
    }
    container = {"name": "app", "resources": {"requests": {"cpu": "1"}}}
    return decode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "ns", "annotations": annotations},
            "spec": {"containers": [container], **spec},
            "status": {
                "phase": phase,
                "startTime": format_timestamp(NOW - seconds(age_s)),
                "conditions": [condition],
            },
        }
    )


def pods(*usages, **fields):
    return [pod(f"p{index}", usage, **fields) for index, usage in enumerate(usages)]


def proposed(selected, target, current, tolerances=TENTH, metered=CPU_OF_PODS):
    groups = group_pods(selected, metered, CONFIG, NOW)
    return utilization_proposal(groups, groups.usage(0), target, tolerances, current)


@pytest.mark.parametrize(
    ("selected", "target", "current", "replicas", "utilization"),
    [
        pytest.param(pods(300, 500, 700), 30, 3, 5, 50, id="scale up"),
        pytest.param(pods(100, 300, 500, 250, 250), 50, 5, 3, 28, id="scale down"),
        pytest.param(pods(1010, 1030, 1020), 100, 3, 3, 102, id="no change within the tolerance"),
        pytest.param(pods(1100, 1100), 100, 2, 2, 110, id="no change at its edge"),
        pytest.param(pods(1110, 1110), 100, 2, 3, 111, id="a change beyond it"),
        pytest.param(
            [*pods(500, 700), pod("new", 0, ready=False, age_s=60)],
            30, 3, 4, 60, id="an unready pod counts as idle when scaling up",
        ),
        pytest.param(
            [*pods(100, 100), pod("new", 0, ready=False, age_s=60)],
            50, 3, 1, 10, id="and not at all when scaling down",
        ),
        pytest.param(
            [*pods(500, 700), pod("new", 900, age_s=60, ready_s=14)],
            30, 3, 4, 60, id="so does a pod that is ready for less than a window",
        ),
        pytest.param(
            [*pods(500, 700), pod("new", 900, age_s=60, ready_s=15)],
            30, 3, 7, 70, id="but not longer",
        ),
        pytest.param(
            [*pods(500, 700), pod("slow", 900, ready=False, age_s=400, ready_s=395)],
            30, 3, 4, 60, id="an old pod that was never ready is unready",
        ),
        pytest.param(
            [*pods(500, 700), pod("broken", 900, ready=False, age_s=400, ready_s=10)],
            30, 3, 7, 70, id="an old pod that became unready counts",
        ),
        pytest.param(
            [*pods(500, 700), pod("pending", phase="Pending")],
            30, 3, 4, 60, id="a pending pod is unready",
        ),
        pytest.param(
            [*pods(300, 300), pod("silent")], 30, 3, 3, 30,
            id="a pod without a metric changes nothing on target",
        ),
        pytest.param(
            [*pods(100, 100), pod("silent")], 50, 3, 3, 10,
            id="it counts with its requests when scaling down",
        ),
        pytest.param(
            [*pods(600, 600), pod("silent")], 30, 3, 4, 60,
            id="and as idle when scaling up",
        ),
        pytest.param(
            [*pods(300, 500, 700), pod("gone", 0, phase="Failed")],
            30, 3, 5, 50, id="a failed pod is ignored",
        ),
    ],
)  # fmt: skip
def test_the_average_utilization_is_brought_to_the_target(
    selected, target, current, replicas, utilization
):
    found = proposed(selected, target, current)
    assert (found.replicas, found.utilization) == (replicas, utilization)


def test_each_direction_has_its_tolerance():
    wide = Tolerances(scale_down=0.5, scale_up=0.0)
    assert proposed(pods(600, 600), 100, 2, wide).replicas == 2
    assert proposed(pods(1010, 1010), 100, 2, wide).replicas == 3


def test_the_target_may_be_an_amount():
    groups = group_pods(pods(300, 500), CPU_OF_PODS, CONFIG, NOW)
    assert average_proposal(groups, groups.usage(0), 100, TENTH, 2) == Proposal(8, 400)


@pytest.mark.parametrize(
    ("selected", "message"),
    [
        pytest.param(
            pods(None, None),
            "unable to get metrics for resource cpu: no metrics returned from resource metrics API",
            id="no usage is stated",
        ),
        pytest.param(
            pods(100, ready=False, age_s=60),
            "did not receive metrics for targeted pods (pods might be unready)",
            id="no pod is ready",
        ),
        pytest.param(
            [pod("p", 100, containers=[{"name": "app"}])],
            "missing request for cpu in container app of Pod p",
            id="nothing is requested",
        ),
        pytest.param(
            pods(100, resources={"requests": {"memory": "1Gi"}}, containers=[{"name": "app"}]),
            "missing pod-level request for cpu in Pod p0",
            id="the pod requests another resource",
        ),
    ],
)
def test_the_reasons_why_no_replicas_are_proposed(selected, message):
    with pytest.raises(MetricError) as caught:
        proposed(selected, 50, 2)
    assert str(caught.value) == message


def test_the_load_is_divided_over_the_serving_pods():
    """Three pods share the load, one of which does not count yet; an unready pod gets nothing."""
    selected = [
        *pods(None, None),
        pod("new", age_s=60, ready_s=5),
        pod("broken", ready=False, age_s=400, ready_s=10),
    ]
    groups = group_pods(selected, MeteredResource("cpu", "", has_load=True), CONFIG, NOW)
    assert (groups.serving, groups.counted.pods, groups.unready.pods) == (3, 3, 1)
    assert groups.usage(3000) == 2000
    assert groups.until == NOW + seconds(10)  # the time from which the new pod's metric counts


def test_a_container_uses_its_part_of_the_requests():
    both = [
        {"name": "app", "resources": {"requests": {"cpu": "750m"}}},
        {"name": "proxy", "resources": {"requests": {"cpu": "250m"}}},
    ]
    metered = MeteredResource("cpu", "proxy", has_load=True)
    groups = group_pods(pods(None, None, containers=both), metered, CONFIG, NOW)
    assert groups.usage(4000) == 1000
    assert groups.counted.requests == 500
    with pytest.raises(MetricError, match="container proxy not present in metrics for pod ns/p0"):
        group_pods(pods(None), metered, CONFIG, NOW)


@pytest.mark.parametrize(
    ("selected", "resource", "has_advice"),
    [
        pytest.param(pods(None), "cpu", True, id="a running pod has no stated usage"),
        pytest.param([], "cpu", False, id="there are no pods"),
        pytest.param([pod("p", phase="Pending")], "cpu", False, id="no pod runs"),
        pytest.param(pods(None), "example.com/gpu", False, id="no usage can be stated"),
    ],
)
def test_the_advice_follows_the_error_if_it_helps(selected, resource, has_advice):
    config = HorizontalPodAutoscalerConfig(usage_advice="; set it")
    with pytest.raises(MetricError) as caught:
        group_pods(selected, MeteredResource(resource, "", has_load=False), config, NOW)
    assert str(caught.value).endswith("resource metrics API" + "; set it" * has_advice)
