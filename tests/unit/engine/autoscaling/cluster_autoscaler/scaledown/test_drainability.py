"""Which nodes count as empty, and for how long the result is valid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.drainability import DrainRules
from fairlead.engine.core.instant import seconds

NOW = seconds(1_800_000_000)
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
CREATED = "2027-01-15T07:30:00Z"
GONE_SINCE = "2027-01-15T07:00:00Z"


def pod(owner="ReplicaSet", namespace="shop", deleted=None, **annotations):
    meta = {"name": "a", "namespace": namespace, "uid": "a", "creationTimestamp": CREATED}
    meta["annotations"] = annotations
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": owner, "name": "x", "uid": "x"}
        meta["ownerReferences"] = [{**reference, "controller": True}]
    if deleted:
        meta |= {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": 30}
    return decode_as(Pod, {"metadata": meta, "spec": {"containers": [{"name": "c"}]}})


REPLICATED = pod()
DAEMON = pod("DaemonSet")
LONE = pod(None)
WAITING = pod(**{SAFE_TO_EVICT: "on-completion"})
SYSTEM = pod(namespace="kube-system")
STUCK = pod(deleted=GONE_SINCE)
KINDS = (REPLICATED, DAEMON, LONE, WAITING, SYSTEM, STUCK)
RULES = DrainRules(AutoscalingOptions())


@pytest.mark.parametrize(
    ("pods", "answer", "is_lasting"),
    [
        pytest.param([], (True, False), True, id="no pod"),
        pytest.param([DAEMON], (True, False), True, id="a pod of a DaemonSet goes with its node"),
        pytest.param([DAEMON, REPLICATED], (False, False), True, id="a pod that has to move"),
        pytest.param([LONE], (False, False), True, id="a pod that blocks"),
        pytest.param([WAITING], (True, True), True, id="a pod that must complete"),
        pytest.param([SYSTEM], (False, False), False, id="a system pod blocks for an hour"),
        pytest.param([SYSTEM, LONE], (False, False), True, id="another pod decides for good"),
        pytest.param([STUCK], (True, False), False, id="a pod that should be gone"),
    ],
)
def test_which_pods_a_node_may_have_and_count_as_empty(pods, answer, is_lasting):
    assert RULES.emptiness(pods, NOW) == (answer, is_lasting)


@given(pods=st.lists(st.sampled_from(KINDS), max_size=5))
def test_a_node_is_empty_exactly_if_its_drain_finds_no_pods(pods):
    found = RULES.pods_to_move(pods, NOW)
    expected = found.is_empty, found.is_empty and bool(found.on_completion)
    assert RULES.emptiness(pods, NOW)[0] == expected
