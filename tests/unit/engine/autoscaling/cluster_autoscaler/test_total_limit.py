"""TotalLimit compares amounts without rounding them to the unit of the flag."""

from __future__ import annotations

from fairlead.engine.autoscaling.cluster_autoscaler.options import GIB
from fairlead.engine.autoscaling.cluster_autoscaler.resource_quota import TotalLimit


def test_memory_is_rounded_only_in_words():
    """Ten nodes of 30.2 GiB exist; two more make 362.4 GiB."""
    node = GIB * 302 // 10
    limit = TotalLimit("--memory-total", "GiB", 363 * GIB, 10 * node, {"general": node})
    assert not limit.exceeded_by("general", 2)
    assert limit.exceeded_by("general", 3)
    assert limit.words(limit.present + 100 * node) == "3,322 GiB"
    assert limit.in_unit(limit.maximum) == 363


def test_cores_and_gpus_are_whole_numbers():
    limit = TotalLimit("--cores-total", "core", 16, 8, {"general": 4})
    assert (limit.exceeded_by("general", 2), limit.exceeded_by("general", 3)) == (False, True)
    assert (limit.words(1), limit.words(16)) == ("1 core", "16 cores")
