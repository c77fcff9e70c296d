"""Default tolerations of pods for nodes that are not ready or unreachable."""

from __future__ import annotations

import pytest

from fairlead.apiserver.kind import POD

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


def added(key):
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


BOTH = [added(NOT_READY), added(UNREACHABLE)]
OWN = {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
ELSEWHERE = {"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"}
OTHER = {"key": "gpu", "operator": "Exists"}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ([], BOTH),
        ([OTHER], [OTHER, *BOTH]),
        ([OWN], [OWN, added(UNREACHABLE)]),
        ([ELSEWHERE], [ELSEWHERE, *BOTH]),
        (
            [{"key": UNREACHABLE, "operator": "Exists"}],
            [{"key": UNREACHABLE, "operator": "Exists"}, added(NOT_READY)],
        ),
        ([{"operator": "Exists"}], [{"operator": "Exists"}]),
    ],
    ids=[
        "no tolerations",
        "another toleration",
        "a toleration of one taint",
        "a toleration with another effect",
        "tolerates every effect of one taint",
        "tolerates everything",
    ],
)
def test_a_new_pod_tolerates_a_lost_node_for_five_minutes_by_default(
    store, pod, now, own, expected
):
    store.create(pod(tolerations=own), now)
    assert store.get(POD, "default", "a")["spec"]["tolerations"] == expected


def test_a_loaded_pod_without_tolerations_gets_the_defaults(store, pod, now):
    store.load([pod()], now)
    assert store.get(POD, "default", "a")["spec"]["tolerations"] == BOTH
