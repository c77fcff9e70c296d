"""Taints and tolerations."""

from __future__ import annotations

import pytest

from fairlead.api.nodes.taint import (
    count_intolerable_prefer_no_schedule,
    find_untolerated,
    is_tolerated,
    tolerates,
)
from fairlead.api.objects import Taint, Toleration

GPU = Taint(key="gpu", value="a100", effect="NoSchedule")
BARE = Taint(key="gpu", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(key="gpu", operator="Equal", value="a100", effect="NoSchedule"), True),
        (Toleration(key="gpu", value="a100"), True),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="gpu"), False),
        (Toleration(key="gpu", operator="Equal", value="h100"), False),
        (Toleration(key="cpu", operator="Exists"), False),
        (Toleration(key="gpu", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="gpu", operator="Gt", value="1"), False),
        (Toleration(key="gpu", operator="Exists", toleration_seconds=0), True),
    ],
)
def test_a_toleration_tolerates_a_taint(toleration, expected):
    """A missing effect, key or operator has its default; Gt and Lt never match."""
    assert tolerates(toleration, GPU) is expected


def test_an_absent_value_equals_an_absent_value():
    """Both values are ""."""
    assert tolerates(Toleration(key="gpu"), BARE)
    assert not tolerates(Toleration(key="gpu", value="x"), BARE)


def test_the_first_untolerated_taint_of_the_effects_is_found():
    """Taints are checked in the node's order; taints with other effects are skipped."""
    soft = Taint(key="soft", effect="PreferNoSchedule")
    hard = Taint(key="hard", effect="NoExecute")
    taints = (soft, GPU, hard)
    effects = ("NoSchedule", "NoExecute")
    assert find_untolerated(taints, (), effects) == GPU
    assert find_untolerated(taints, (Toleration(key="gpu", operator="Exists"),), effects) == hard
    assert find_untolerated(taints, (Toleration(operator="Exists"),), effects) is None
    assert find_untolerated((soft,), (), effects) is None


def test_only_tolerations_of_prefer_no_schedule_or_all_effects_reduce_the_count():
    """A NoSchedule toleration does not count against PreferNoSchedule taints."""
    taints = (
        Taint(key="a", effect="PreferNoSchedule"),
        Taint(key="b", effect="PreferNoSchedule"),
        Taint(key="c", effect="NoSchedule"),
    )
    cases = {
        0: Toleration(operator="Exists"),
        1: Toleration(key="a", operator="Exists", effect="PreferNoSchedule"),
        2: Toleration(operator="Exists", effect="NoSchedule"),
    }
    for count, toleration in cases.items():
        assert count_intolerable_prefer_no_schedule(taints, [toleration]) == count
    assert count_intolerable_prefer_no_schedule(taints, []) == 2


def test_one_of_several_tolerations_suffices():
    """It does not matter which one matches."""
    assert is_tolerated(GPU, [Toleration(key="x"), Toleration(operator="Exists")])
    assert not is_tolerated(GPU, [])
