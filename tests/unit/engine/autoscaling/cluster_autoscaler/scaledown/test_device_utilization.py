"""The utilization of devices; upstream: simulator/dynamicresources/utils/utilization.go."""

from __future__ import annotations

import pytest

from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.device_utilization import (
    device_utilization,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.utilization import UtilizationError
from fairlead.testing.device_builders import (
    DRIVER,
    make_claim_status,
    make_device,
    make_resource_claim,
    make_slice,
)


def claim(*devices, pool="n", **result):
    status = make_claim_status(pool, *devices)
    for one in status["allocation"]["devices"]["results"]:
        one.update(result)
    return make_resource_claim("c", status=status)


def partition(name, counter_set="card", **counters):
    consumed = {"counterSet": counter_set, "counters": amounts(counters)}
    return make_device(name) | {"consumesCounters": [consumed]}


def amounts(counters):
    return {name: {"value": str(value)} for name, value in counters.items()}


def counter_set(name, **counters):
    return {"name": name, "counters": amounts(counters)}


def test_the_pool_with_the_highest_share_counts():
    slices = [
        make_slice("n", ["g0", "g1", "g2", "g3"]),
        make_slice("n", ["a", "b"], pool="other"),
    ]
    used = [claim("g0", "g1", "g2"), claim("a", pool="other")]
    assert device_utilization(slices, used) == (f"{DRIVER}/n", 0.75)
    assert device_utilization(slices, []) == (f"{DRIVER}/other", 0.0)


def test_admin_access_does_not_count():
    assert device_utilization([make_slice("n")], [claim("gpu-0", adminAccess=True)])[1] == 0


def test_old_generations_do_not_count():
    old = make_slice("n", ["g0", "g1"], name="old")
    new = make_slice("n", ["g0"], generation=2)
    assert device_utilization([old, new], [claim("g0")])[1] == 1


def test_a_pool_without_all_slices_and_a_claim_without_devices_are_errors():
    with pytest.raises(UtilizationError, match="pool n is incomplete"):
        device_utilization([make_slice("n", count=2)], [])
    with pytest.raises(UtilizationError, match="default/c not allocated"):
        device_utilization([make_slice("n")], [make_resource_claim("c")])


# Two cards with 40 GiB and 8 cores each, as partitions, and two whole devices.
CARDS = [
    make_slice(
        "n",
        [
            partition("half-0", memory="20Gi", cores=6),
            partition("half-1", memory="20Gi", cores=2),
            partition("full", "card-1", memory="40Gi", cores=8),
            "w0",
            "w1",
        ],
        count=2,
    ),
    make_slice(
        "n",
        [],
        name="counters",
        count=2,
        spec={
            "sharedCounters": [
                counter_set("card", memory="40Gi", cores=8, spare=0),
                counter_set("card-1", memory="40Gi", cores=8),
            ]
        },
    ),
]


@pytest.mark.parametrize(
    ("used", "share"),
    [
        ([], 0.0),
        (["w0"], 0.5),  # without partitions in use, only whole devices count
        (["half-0"], 0.375),  # 6 of 8 cores of one of two cards
        (["half-0", "half-1"], 0.5),
        (["half-0", "full"], 0.875),
        (["half-0", "w0"], 0.375 * 0.5 + 0.5 * 0.5),
    ],
)
def test_partitions_count_by_the_scarcest_counter_of_each_card(used, share):
    assert device_utilization(CARDS, [claim(*used)])[1] == pytest.approx(share)
