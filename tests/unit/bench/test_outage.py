"""The simulated days, made small: after an outage all pods run again, and it is measured."""

from __future__ import annotations

import time

import pytest

from fairlead.bench.measurement import IncompleteRunError
from fairlead.bench.outage import OUTAGE_WORKLOADS, OutageWorkload, measure_outage
from fairlead.bench.suite import NAMES, measure_here


def test_a_day_is_measured():
    """All pods of the five dark nodes are evicted, and the cluster is well in the end."""
    found = measure_outage(OutageWorkload("small", 15, 1))
    assert found.virtual_seconds_per_second == pytest.approx(86_400 / found.seconds)
    assert round(found.pods_per_second * found.seconds) == 50
    assert found.peak_mib > 1


def test_a_day_without_evictions_is_no_measurement():
    """Five dark minutes are tolerated, and nothing is measured."""
    with pytest.raises(IncompleteRunError, match="small: 0 pods were evicted, and 150 of 150"):
        measure_outage(OutageWorkload("small", 15, 1, duration_s=300))


def test_a_hundred_nodes_take_less_than_two_seconds():
    """Of this process, so that it holds on a busy machine, too."""
    name = "Outage/100Nodes_24h"
    assert name in NAMES
    began = time.process_time()
    assert measure_here(name).seconds > 0
    assert time.process_time() - began < OUTAGE_WORKLOADS[name].seconds_max
