"""Stabilization windows, policies and limits."""

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import HorizontalPodAutoscalerSpec
from fairlead.engine.core.instant import seconds
from fairlead.engine.workloads.horizontal_pod_autoscaler.scale_history import ScaleHistory

NOW = seconds(1_000_000)
PERCENT = {"type": "Percent", "value": 100, "periodSeconds": 15}


def spec(behavior=None, **fields):
    known = {"minReplicas": 2, "maxReplicas": 100} | fields
    return decode_as(
        HorizontalPodAutoscalerSpec, known | ({"behavior": behavior} if behavior else {})
    )


def rules(up=None, down=None):
    up = {"stabilizationWindowSeconds": 0, "policies": [PERCENT]} | (up or {})
    return {"scaleUp": up, "scaleDown": {"policies": [PERCENT]} | (down or {})}


def history(*recommended):
    """Return a history of (seconds ago, replicas)."""
    made = ScaleHistory(seconds(300))
    for ago_s, replicas in recommended:
        made.recommend(replicas, NOW - seconds(ago_s))
    return made


@pytest.mark.parametrize(
    ("recommended", "stated", "current", "desired", "replicas", "able", "limit"),
    [
        pytest.param([], spec(), 5, 7, 7, "ReadyForNewScale", "DesiredWithinRange", id="up"),
        pytest.param([], spec(), 5, 30, 10, "ReadyForNewScale", "ScaleUpLimit", id="at most twice"),
        pytest.param([], spec(), 1, 9, 4, "ReadyForNewScale", "ScaleUpLimit", id="or to four"),
        pytest.param([], spec(maxReplicas=8), 5, 30, 8, "ReadyForNewScale", "TooManyReplicas",
                     id="at most maxReplicas"),
        pytest.param([], spec(), 5, 1, 2, "ReadyForNewScale", "TooFewReplicas",
                     id="at least minReplicas"),
        pytest.param([(300, 6), (301, 9)], spec(), 5, 3, 6, "ScaleDownStabilized",
                     "DesiredWithinRange", id="the highest of five minutes"),
        pytest.param([(299, 5), (300, 9)], spec(rules()), 6, 3, 5, "ScaleDownStabilized",
                     "DesiredWithinRange", id="with rules a window excludes its begin"),
        pytest.param([(50, 6), (70, 3)],
                     spec(rules(up={"stabilizationWindowSeconds": 60})), 5, 9, 6,
                     "ScaleUpStabilized", "DesiredWithinRange", id="the lowest of the window"),
        pytest.param([], spec(rules(up={"policies": [{"type": "Pods", "value": 2,
                     "periodSeconds": 60}]})), 5, 30, 7, "ReadyForNewScale", "ScaleUpLimit",
                     id="two pods a minute"),
        pytest.param([], spec(rules(up={"selectPolicy": "Min", "policies": [PERCENT, {
                     "type": "Pods", "value": 2, "periodSeconds": 60}]})), 5, 30, 7,
                     "ReadyForNewScale", "ScaleUpLimit", id="the smaller of two policies"),
        pytest.param([], spec(rules(up={"selectPolicy": "Disabled"})), 5, 30, 5,
                     "ReadyForNewScale", "ScaleUpLimit", id="no growth"),
        pytest.param([], spec(rules(up={"policies": [{"type": "Percent", "value": 10,
                     "periodSeconds": 60}]})), 5, 30, 6, "ReadyForNewScale", "ScaleUpLimit",
                     id="a percentage is rounded up when growing"),
        pytest.param([], spec(rules(down={"policies": [{"type": "Percent", "value": 10,
                     "periodSeconds": 60}]})), 15, 3, 13, "ReadyForNewScale", "ScaleDownLimit",
                     id="and the rest rounded down when shrinking"),
        pytest.param([], spec(rules(down={"selectPolicy": "Disabled"})), 15, 3, 15,
                     "ReadyForNewScale", "ScaleDownLimit", id="no shrinking"),
    ],
)  # fmt: skip
def test_a_recommendation_is_stabilized_and_limited(  # noqa: PLR0917
    recommended, stated, current, desired, replicas, able, limit
):
    found = history(*recommended).normalize(stated, current, desired, NOW)
    assert (found.replicas, found.able[0], found.limit[0]) == (replicas, able, limit)
    assert found.is_limited == (limit != "DesiredWithinRange")


def test_a_policy_counts_what_its_period_has_seen():
    """Two pods were added and one removed half a minute ago; three were added long ago."""
    stated = spec(rules(up={"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}))
    made = ScaleHistory(seconds(300))
    made.record(stated.behavior, 3, NOW - seconds(61))
    made.record(stated.behavior, 2, NOW - seconds(30))
    made.record(stated.behavior, -1, NOW - seconds(29))
    assert made.normalize(stated, 10, 50, NOW).replicas == 10 - 2 + 1 + 4


def test_growth_that_the_own_policies_forget_still_limits_shrinking():
    """A new change replaces only one entry that is too old for the scale-up policies."""
    down = {"stabilizationWindowSeconds": 0}
    down["policies"] = [{"type": "Pods", "value": 1, "periodSeconds": 300}]
    stated = spec(rules(down=down))
    made = ScaleHistory(seconds(300))
    for ago_s, change in ((110, 2), (100, 3), (10, 4)):
        made.record(stated.behavior, change, NOW - seconds(ago_s))
    found = made.normalize(stated, 12, 2, NOW)
    assert found.replicas == 12 - (2 + 4) - 1


def test_every_recommendation_is_remembered():
    made, stated = history(), spec()
    assert made.normalize(stated, 5, 8, NOW).replicas == 8
    assert made.normalize(stated, 8, 4, NOW + seconds(300)).replicas == 8
    assert made.normalize(stated, 8, 4, NOW + seconds(301)).replicas == 4
