"""The flags of kube-controller-manager."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.flag import FlagError, config_of_flags
from fairlead.engine.nodelifecycle.profile import V1_16, V1_36


def test_without_flags_the_defaults_apply():
    assert config_of_flags({}) == NodeLifecycleConfig()
    assert config_of_flags({}).monitor_grace == seconds(50)
    assert config_of_flags({}, V1_16).monitor_grace == seconds(40)


def test_every_flag_is_read():
    flags = {
        "node-monitor-period": "2s",
        "node-startup-grace-period": "1m30s",
        "node-monitor-grace-period": "20s",
        "pod-eviction-timeout": "10m",
        "node-eviction-rate": "0.5",
        "secondary-node-eviction-rate": "0",
        "large-cluster-size-threshold": "20",
        "unhealthy-zone-threshold": "0.7",
        "enable-taint-manager": "False",
        "terminated-pod-gc-threshold": "0",
    }
    found = config_of_flags(flags, V1_16)
    assert found == NodeLifecycleConfig(
        profile=V1_16,
        node_monitor_period=seconds(2),
        node_startup_grace_period=seconds(90),
        node_monitor_grace_period=seconds(20),
        pod_eviction_timeout=seconds(600),
        node_eviction_rate=0.5,
        secondary_node_eviction_rate=0.0,
        large_cluster_size_threshold=20,
        unhealthy_zone_threshold=0.7,
        enable_taint_manager=False,
        terminated_pod_gc_threshold=0,
    )
    assert found.monitor_grace == seconds(20)


def test_gates_of_old_versions_are_read():
    gates = "TaintBasedEvictions=false,NodeDisruptionExclusion=true,LegacyNodeRoleBehavior=false"
    found = config_of_flags({"feature-gates": gates}, V1_16)
    assert not found.taint_based_evictions
    assert found.profile.excludes_labelled
    assert not found.profile.excludes_masters


@pytest.mark.parametrize(
    ("flag", "text", "problem"),
    [
        ("node-monitor-period", "often", "is not a duration"),
        ("node-monitor-period", "0s", "longer than 0"),
        ("node-monitor-grace-period", "-1s", "is negative"),
        ("node-eviction-rate", "-1", "is not a number of nodes per second"),
        ("node-eviction-rate", "1e39", "is not a number of nodes per second"),
        ("node-eviction-rate", "5e-324", "'5e-324' is neither 0 nor at least 1e-09 nodes per"),
        ("secondary-node-eviction-rate", "9e-10", "is neither 0 nor at least 1e-09 nodes per"),
        ("node-eviction-rate", "nan", "is not a number of nodes per second"),
        ("node-eviction-rate", "fast", "'fast' is not a number of nodes per second, such"),
        ("unhealthy-zone-threshold", "1.5", "'1.5' is not a number from 0 to 1"),
        ("large-cluster-size-threshold", "1e3", "'1e3' is not an integer"),
        ("large-cluster-size-threshold", "3000000000", "does not fit 32 bits"),
        ("enable-taint-manager", "perhaps", "is neither true nor false"),
        ("feature-gates", "TaintBasedEvictions", "is neither true nor false"),
        ("feature-gates", "EveryThing=true", "changes nothing that is simulated"),
        ("node-sync-period", "1s", "is not one of"),
    ],
)
def test_an_invalid_value_is_refused_with_its_flag(flag, text, problem):
    with pytest.raises(FlagError, match=problem) as refused:
        config_of_flags({flag: text}, V1_16)
    assert refused.value.flag == flag
    assert str(refused.value).startswith(f"--{flag}: ")


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("pod-eviction-timeout", "5m"),
        ("enable-taint-manager", "true"),
        ("feature-gates", "TaintBasedEvictions=false"),
    ],
)
def test_a_flag_that_was_removed_in_the_version_is_refused(flag, text):
    with pytest.raises(FlagError, match=r"no longer has|changes nothing"):
        config_of_flags({flag: text}, V1_36)
