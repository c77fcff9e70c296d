"""HorizontalPodAutoscalers: when they sync, how they scale, and their conditions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.core.command import PatchObject, PatchStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.workloads.event_sink import Events
from fairlead.engine.workloads.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.controller import HorizontalPodAutoscalers
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import LoadCurve

T0 = seconds(1_000_000)
WEB = ("Deployment", "ns", "web")
LABELS = {"app": "web"}
UNABLE = "the HPA was unable to compute the replica count: "
NO_METRICS = (
    "failed to get cpu utilization: unable to get metrics for resource cpu: "
    "no metrics returned from resource metrics API"
)


def deployment(replicas=2, name="web", **meta):
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "app"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    metadata = {"name": name, "namespace": "ns", **meta}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def pod(number, **status):
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"}
    container = {"name": "app", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"web-{number}", "namespace": "ns", "labels": LABELS},
        "spec": {"containers": [container], "nodeName": "node"},
        "status": {"phase": "Running", "startTime": "1970-01-01T00:00:00Z", "conditions": [ready]}
        | status,
    }


def autoscaler(name="web", kind="Deployment", version="apps/v1", target="web", **spec):
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    stated = {
        "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": target},
        "minReplicas": 1,
        "maxReplicas": 10,
        "metrics": [{"type": "Resource", "resource": cpu}],
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": stated | spec,
    }


def cores(*amounts):
    """Return a load curve with a step every minute; amounts are in thousandths."""
    points = []
    for minute, amount in enumerate(amounts):
        points += [(seconds(60 * minute), amount), (seconds(60 * (minute + 1)), amount)]
    return {WEB: {"cpu": LoadCurve(tuple(points), start=T0)}}


@pytest.fixture
def begin(new_world):
    """Makes worlds with a load; `refreshes` writes statuses as for API clients."""

    def make(loads=None, *, refreshes=True, **options):
        config = HorizontalPodAutoscalerConfig(loads=loads or {}, refreshes_status=refreshes)
        return new_world(HorizontalPodAutoscalers(config, Events()), **options)

    return make


def replicas(world, name="web"):
    return world.get("Deployment", name)["spec"]["replicas"]


def status(world, name="web"):
    return world.get("HorizontalPodAutoscaler", name)["status"]


def condition(world, type_, name="web"):
    (found,) = [one for one in status(world, name)["conditions"] if one["type"] == type_]
    return found["status"], found["reason"], found["message"]


def happened(world):
    return [(one.type, one.reason, one.note) for one in world.events]


def test_an_autoscaler_scales_after_fifteen_seconds_with_an_event(begin):
    world = begin(cores(2000)).load(deployment(), pod(0), pod(1), autoscaler())
    world.run(seconds(14))
    assert replicas(world) == 2
    world.run(seconds(1))
    assert replicas(world) == 4
    why = "cpu resource utilization (percentage of request) above target"
    assert happened(world) == [("Normal", "SuccessfulRescale", f"New size: 4; reason: {why}")]
    found = status(world)
    assert (found["currentReplicas"], found["desiredReplicas"]) == (2, 4)
    current = {"averageUtilization": 100, "averageValue": "1"}
    assert found["currentMetrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "current": current}}
    ]
    assert found["lastScaleTime"] == "1970-01-12T13:46:55Z"
    update = "the HPA controller was able to update the target scale to 4"
    assert condition(world, "AbleToScale") == ("True", "SucceededRescale", update)


def test_without_a_stated_load_nothing_is_scaled_and_the_reason_is_given(begin):
    """The default usage of a simulated pod is not a load."""
    world = begin().load(deployment(), pod(0), pod(1), autoscaler())
    world.run(seconds(15))
    assert replicas(world) == 2
    assert condition(world, "ScalingActive") == (
        "False", "FailedGetResourceMetric", UNABLE + NO_METRICS,
    )  # fmt: skip
    invalid = "invalid metrics (1 invalid out of 1), first error is: "
    assert happened(world) == [
        ("Warning", "FailedGetResourceMetric", NO_METRICS),
        ("Warning", "FailedComputeMetricsReplicas",
         f"{invalid}failed to get cpu resource metric value: {NO_METRICS}"),
    ]  # fmt: skip


def test_an_annotation_of_the_workload_states_its_load(begin):
    world = begin().load(deployment(), pod(0), pod(1), autoscaler())
    world.run(seconds(20))
    world.patch("Deployment", "web", {"metadata": {"annotations": {"fairlead.dev/load": "cpu=3"}}})
    world.run(seconds(10))
    assert replicas(world) == 4
    assert status(world)["currentMetrics"][0]["resource"]["current"]["averageUtilization"] == 150


def test_an_autoscaler_scales_down_five_minutes_after_the_end_of_the_load(begin):
    world = begin(cores(1000, 100)).load(deployment(), pod(0), pod(1), autoscaler())
    world.run(seconds(345))
    assert replicas(world) == 2
    assert condition(world, "AbleToScale")[1] == "ScaleDownStabilized"
    world.run(seconds(15))
    assert replicas(world) == 1
    assert happened(world)[0][2] == "New size: 1; reason: All metrics below target"


@pytest.mark.parametrize(
    ("count", "spec", "expected", "why"),
    [
        (5, {"maxReplicas": 3}, 3, "Current number of replicas above Spec.MaxReplicas"),
        (2, {"minReplicas": 4}, 4, "Current number of replicas below Spec.MinReplicas"),
    ],
)
def test_the_limits_apply_without_metrics(begin, count, spec, expected, why):
    world = begin().load(deployment(count), autoscaler(**spec))
    world.run(seconds(15))
    assert replicas(world) == expected
    assert happened(world)[0][2] == f"New size: {expected}; reason: {why}"


def test_an_equal_status_is_not_written_again(begin):
    """The API server omits currentReplicas of 0 and states null metrics."""
    world = begin().load(deployment(replicas=0), autoscaler())
    world.run(seconds(15))
    stored = world.get("HorizontalPodAutoscaler", "web")
    stored["status"].pop("currentReplicas", None)
    stored["status"]["currentMetrics"] = None
    world.load(stored)
    written = len(world.log)
    world.run(seconds(60))
    assert world.log[written:] == []


def test_a_target_with_zero_replicas_is_not_scaled(begin):
    world = begin().load(deployment(0), autoscaler())
    world.run(seconds(60))
    assert replicas(world) == 0
    assert condition(world, "ScalingActive")[:2] == ("False", "ScalingDisabled")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({"target": "api"}, 'deployments.apps "api" not found'),
        ({"kind": "Web"}, 'no matches for kind "Web" in group "apps"'),
        ({"kind": "DaemonSet"}, "the server could not find the requested resource"),
        ({"version": "a/b/c"}, "unexpected GroupVersion string: a/b/c"),
    ],
)
def test_a_target_without_a_scale_is_reported(begin, reference, message):
    world = begin().load(deployment(), autoscaler(**reference))
    world.run(seconds(15))
    prefix = "the HPA controller was unable to get the target's current scale: "
    assert condition(world, "AbleToScale") == ("False", "FailedGetScale", prefix + message)
    assert happened(world) == [("Warning", "FailedGetScale", message)]


def test_a_target_may_be_created_later(begin):
    world = begin(cores(2000)).load(pod(0), pod(1), autoscaler())
    world.run(seconds(15))
    world.create(deployment())
    world.run(seconds(15))
    assert replicas(world) == 4


def test_two_autoscalers_of_the_same_pods_do_not_scale(begin):
    world = begin(cores(1000)).load(deployment(), pod(0), pod(1), autoscaler(), autoscaler("other"))
    world.run(seconds(30))
    words = "pods by selector app=web are controlled by multiple HPAs: [ns/other ns/web]"
    for name in ("web", "other"):
        assert condition(world, "ScalingActive", name) == ("False", "AmbiguousSelector", words)


def test_an_autoscaler_that_skips_syncs_notices_another_one_of_its_pods(begin):
    """After the other autoscaler is deleted, it scales again."""
    world = begin(cores(*[2000] * 3, 4000), refreshes=False)
    world.load(deployment(4), *map(pod, range(4)), autoscaler())
    world.run(seconds(60))
    world.create(autoscaler("other"))
    world.run(seconds(60))
    assert condition(world, "ScalingActive")[1] == "AmbiguousSelector"
    world.delete("HorizontalPodAutoscaler", "other")
    world.run(seconds(100))
    assert condition(world, "ScalingActive")[1] == "ValidMetricFound"
    assert replicas(world) == 8


def test_one_failed_metric_forbids_to_scale_down_only(begin):
    memory = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}
    cpu = autoscaler()["spec"]["metrics"]
    both = autoscaler(metrics=[*cpu, {"type": "Resource", "resource": memory}])
    idle = begin(cores(0)).load(deployment(), pod(0), pod(1), both)
    idle.run(seconds(400))
    assert replicas(idle) == 2
    busy = begin(cores(2000)).load(deployment(), pod(0), pod(1), both)
    busy.run(seconds(15))
    assert replicas(busy) == 4


def test_a_refused_scale_is_reported_and_tried_again(begin):
    refused = []

    def refuse(command):
        if isinstance(command, PatchObject) and not refused:
            refused.append(command)
            return FailureReason.FORBIDDEN
        return None

    world = begin(cores(2000), refuse=refuse).load(deployment(), pod(0), pod(1), autoscaler())
    world.run(seconds(15))
    assert condition(world, "AbleToScale")[:2] == ("False", "FailedUpdateScale")
    assert happened(world)[0][1] == "FailedRescale"
    world.run(seconds(15))
    assert replicas(world) == 4


@pytest.mark.parametrize(
    ("metric", "reason", "message"),
    [
        pytest.param(
            {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"averageValue": "5"}}},
            "FailedGetPodsMetric",
            "unable to get metric rps: unable to fetch metrics from custom metrics API: "
            "no custom metrics API (custom.metrics.k8s.io) registered",
            id="pods",
        ),
        pytest.param(
            {"type": "External", "external": {"metric": {"name": "q"}, "target": {"value": "5"}}},
            "FailedGetExternalMetric",
            "unable to get external metric ns/q/nil: unable to fetch metrics from external "
            "metrics API: the server could not find the requested resource "
            "(get q.external.metrics.k8s.io)",
            id="external",
        ),
    ],
)
def test_metrics_of_other_apis_are_not_available(begin, metric, reason, message):
    world = begin().load(deployment(), pod(0), autoscaler(metrics=[metric]))
    world.run(seconds(15))
    assert condition(world, "ScalingActive") == ("False", reason, UNABLE + message)


def test_no_sync_is_due_in_a_simulation_while_nothing_can_change(new_world):
    """No sync is due once the load and the pods stay as they are, and none without a load."""
    config = HorizontalPodAutoscalerConfig(loads=cores(1000, 1040, 1200))
    controller = HorizontalPodAutoscalers(config)
    world = new_world(controller).load(deployment(), pod(0), pod(1), autoscaler())
    world.run(seconds(30))
    assert controller.next_deadline() == T0 + seconds(120)
    assert len(world.sent(PatchStatus)) == 1
    world.run(seconds(105))
    assert replicas(world) == 3
    assert controller.next_deadline() is None
    assert not controller.is_waiting()


AMOUNTS = st.lists(st.sampled_from([0, 200, 900, 1000, 1100, 1900, 4000, 9000]), max_size=12)


@given(amounts=AMOUNTS, ramp=st.booleans(), behavior=st.booleans())
def test_skipped_syncs_change_no_decision(new_world, amounts, ramp, behavior):
    """With any load, a simulation that skips syncs scales as a cluster that does not."""
    rules = {
        "scaleUp": {"stabilizationWindowSeconds": 30,
                    "policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]},
        "scaleDown": {"stabilizationWindowSeconds": 90,
                      "policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}]},
    }  # fmt: skip
    loads = cores(*amounts, 1000)
    if ramp:
        points = tuple((seconds(100 * i), one) for i, one in enumerate([*amounts, 1000]))
        loads = {WEB: {"cpu": LoadCurve(points, start=T0)}}
    taken = []
    for refreshes in (True, False):
        config = HorizontalPodAutoscalerConfig(loads=loads, refreshes_status=refreshes)
        controller = HorizontalPodAutoscalers(config)
        spec = {"behavior": rules} if behavior else {}
        world = new_world(controller).load(deployment(), pod(0), pod(1), autoscaler(**spec))
        world.run(seconds(905))
        world.create(pod(2))
        world.run(seconds(900))
        taken.append([(one.at, one.before, one.after, one.why) for one in controller.history])
    assert taken[0] == taken[1]
    assert all(1 <= after <= 10 for _, _, after, _ in taken[0])


@pytest.mark.parametrize("refreshes", [True, False])
def test_the_time_with_too_few_replicas_is_the_same_with_skipped_syncs(begin, refreshes):
    """The load rises to 16 pods' worth within 10 minutes, and then falls; the maximum is 10.

    At the maximum, a sync proposes more if the utilization is above 55 %: above a load of 5.6
    cores, because the utilization is cut off to a whole percent.
    """
    points = ((0, 2000), (seconds(600), 8000), (seconds(1200), 2000))
    world = begin({WEB: {"cpu": LoadCurve(points, start=T0)}}, refreshes=refreshes)
    world.load(deployment(replicas=10), *map(pod, range(10)), autoscaler(minReplicas=10))
    world.run(seconds(500))
    (one,) = world.controllers[0].autoscalers
    (lasting,) = one.shortages(world.now)
    assert (lasting.begin - T0, lasting.end - T0, lasting.proposed) == (
        seconds(360), seconds(500), 14
    )  # fmt: skip
    world.run(seconds(1500))
    (found,) = one.shortages(world.now)
    assert (found.begin - T0, found.end - T0, found.proposed) == (seconds(360), seconds(855), 16)
