"""The number of seconds for which taints are tolerated."""

from __future__ import annotations

import pytest

from fairlead.api.objects import Taint, Toleration
from fairlead.engine.nodelifecycle.eviction.taint_eviction import ENDLESS, tolerated_s

A, B = Taint(key="a", effect="NoExecute"), Taint(key="b", effect="NoExecute", value="v")


def toleration(key="", limit=None, *, value="", operator="Exists", effect=""):
    return Toleration(
        key=key, operator=operator, value=value, effect=effect, toleration_seconds=limit
    )


@pytest.mark.parametrize(
    ("taints", "tolerations", "found"),
    [
        pytest.param([A], [], -1, id="not at all"),
        pytest.param([A], [toleration("a")], ENDLESS, id="for ever"),
        pytest.param([A], [toleration("a", 30)], 30, id="for a time"),
        pytest.param([A], [toleration("a", 0)], 0, id="for no time"),
        pytest.param([A], [toleration("a", -5)], 0, id="less than no time"),
        pytest.param([A, B], [toleration("a", 30)], -1, id="one of two"),
        pytest.param([A, B], [toleration("a", 100), toleration("b", 30)], 30, id="the shortest"),
        pytest.param([A, B], [toleration("a"), toleration("b", 30)], 30, id="for ever and not"),
        pytest.param([A], [toleration("a", 30), toleration("a", 90)], 30, id="the first counts"),
        pytest.param([A], [toleration("a", 90), toleration("a", 30)], 90, id="though it is longer"),
        pytest.param([A], [toleration(limit=7)], 7, id="an empty key is any key"),
        pytest.param([A], [toleration("a", 7, effect="NoSchedule")], -1, id="another effect"),
        pytest.param([A], [toleration("a", 7, effect="NoExecute")], 7, id="the effect"),
        pytest.param([B], [toleration("b", 7, operator="", value="v")], 7, id="Equal by default"),
        pytest.param([B], [toleration("b", 7, operator="Equal", value="w")], -1, id="not equal"),
    ],
)
def test_the_tolerated_seconds_of_taints(taints, tolerations, found):
    assert tolerated_s(tuple(taints), tuple(tolerations)) == found
