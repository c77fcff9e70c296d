"""The eviction thresholds of kubelets, and the flags that set them."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.engine.kubelet.eviction_config import (
    EvictionConfig,
    EvictionFlagError,
    Signal,
    Threshold,
    eviction_of_flags,
)

MIB = 1024 * 1024


def test_the_defaults_are_those_of_upstream():
    assert eviction_of_flags({}) == EvictionConfig()
    memory, disk = EvictionConfig().thresholds
    assert (memory.signal, memory.value(10**9)) == (Signal.MEMORY, 100 * MIB)
    assert (disk.signal, disk.value(10**9)) == (Signal.NODEFS, 10**8)


def test_every_flag_sets_its_field():
    """Hard thresholds replace the defaults; signals that are not simulated are ignored."""
    config = eviction_of_flags(
        {
            "eviction-hard": "memory.available<5%,pid.available<10,imagefs.available<15%",
            "eviction-soft": "nodefs.available<1Gi",
            "eviction-soft-grace-period": "nodefs.available=1m30s",
            "eviction-minimum-reclaim": "nodefs.available=500Mi",
            "eviction-pressure-transition-period": "30s",
            "eviction-max-pod-grace-period": "20",
        }
    )
    assert config == EvictionConfig(
        thresholds=(
            Threshold(Signal.MEMORY, share=0.05),
            Threshold(Signal.PID, amount=10),
            Threshold(Signal.NODEFS, amount=1024 * MIB, grace=seconds(90), reclaim=500 * MIB),
        ),
        pressure_transition=seconds(30),
        max_pod_grace_s=20,
    )


def test_hard_thresholds_may_be_empty():
    assert eviction_of_flags({"eviction-hard": ""}).thresholds == ()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"evict": "1"}, "--evict: is not one of eviction-hard, "),
        ({"eviction-hard": "memory.available"}, "'memory.available' is not of the form signal<val"),
        (
            {"eviction-hard": "memory<1Mi"},
            "'memory' is not a signal; known: memory.available, nodefs",
        ),
        ({"eviction-hard": "memory.available<x"}, "--eviction-hard: "),
        ({"eviction-hard": "memory.available<x%"}, "--eviction-hard: could not convert"),
        ({"eviction-hard": "memory.available<100%"}, "100% is not between 0% and 100%"),
        ({"eviction-hard": "memory.available<-1Mi"}, "-1Mi is negative"),
        ({"eviction-soft": "memory.available<1Mi"}, "memory.available needs a grace period in"),
        ({"eviction-soft-grace-period": "memory.available=x"}, "'x' is not a duration"),
        ({"eviction-soft-grace-period": "memory.available=0s"}, "0s is not longer than 0s"),
        ({"eviction-pressure-transition-period": "-1s"}, "-1s is negative"),
        ({"eviction-pressure-transition-period": "x"}, "'x' is not a duration"),
        ({"eviction-max-pod-grace-period": "1m"}, "'1m' is not a number of seconds"),
    ],
)
def test_invalid_flags_are_refused(flags, words):
    """The error is one line that names the flag."""
    with pytest.raises(EvictionFlagError) as refusal:
        eviction_of_flags(flags)
    assert words in str(refusal.value)
    assert refusal.value.flag in flags
