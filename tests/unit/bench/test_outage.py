"""Simulated outages at a small size: all pods run again afterwards, and the run is measured."""

from __future__ import annotations

import time

import pytest

from fairlead.bench.measurement import IncompleteRunError
from fairlead.bench.outage import OUTAGE_WORKLOADS, OutageWorkload, measure_outage
from fairlead.bench.suite import NAMES, measure_here


def test_a_simulated_day_is_measured():
    """All pods of the five failed nodes are evicted, and all pods run in the end."""
    found = measure_outage(OutageWorkload("small", 15, 1))
    assert found.virtual_seconds_per_second == pytest.approx(86_400 / found.seconds)
    assert round(found.pods_per_second * found.seconds) == 50
    assert found.peak_mib > 1


def test_a_day_without_evictions_is_not_measured():
    """Pods tolerate an outage of five minutes, so nothing is measured."""
    with pytest.raises(IncompleteRunError, match="small: 0 pods were evicted, and 150 of 150"):
        measure_outage(OutageWorkload("small", 15, 1, duration_s=300))


def test_a_hundred_nodes_take_less_than_two_seconds():
    """This is CPU time of the process, so that the limit holds on a busy machine."""
    name = "Outage/100Nodes_24h"
    assert name in NAMES
    began = time.process_time()
    assert measure_here(name).seconds > 0
    assert time.process_time() - began < OUTAGE_WORKLOADS[name].seconds_max
