"""How long pods stay on a lost node when they do not say it themselves."""

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
        "says nothing",
        "tolerates something else",
        "says it of one taint",
        "says it of another effect",
        "tolerates every effect of one taint",
        "tolerates everything",
    ],
)
def test_a_new_pod_stays_five_minutes_unless_it_says_otherwise(store, pod, now, own, expected):
    store.create(pod(tolerations=own), now)
    assert store.get(POD, "default", "a")["spec"]["tolerations"] == expected


def test_a_loaded_pod_that_says_nothing_was_written_by_hand(store, pod, now):
    store.load([pod()], now)
    assert store.get(POD, "default", "a")["spec"]["tolerations"] == BOTH
