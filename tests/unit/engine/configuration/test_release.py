"""The Kubernetes version that each component follows, and the feature gates of a version."""

from __future__ import annotations

import pytest

from fairlead.engine.configuration.default_config import default_config
from fairlead.engine.configuration.error import ConfigurationError
from fairlead.engine.configuration.feature_gate import check_required_gates, parse_gates
from fairlead.engine.configuration.release import CURRENT, SELECTABLE, release_of
from fairlead.engine.nodelifecycle.profile import V1_16
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.version import V1_36


@pytest.mark.parametrize(
    ("version", "scheduler", "nodes", "admission"),
    [
        ("1.16", "1.19", "1.16", "1.21"),
        ("1.19", "1.19", "1.16", "1.21"),
        ("1.21", "1.19", "1.16", "1.21"),
        ("1.36", "1.36", "1.36", "1.36"),
        ("", "1.36", "1.36", "1.36"),
    ],
)
def test_a_component_follows_the_newest_supported_version_not_above(
    version, scheduler, nodes, admission
):
    """Below the oldest supported version, it follows the oldest."""
    assert release_of(version).parts == {
        "scheduler": scheduler,
        "node controllers": nodes,
        "priority admission": admission,
    }


def test_unsupported_versions_are_refused_with_the_list_of_versions():
    with pytest.raises(ConfigurationError) as refused:
        release_of("1.20")
    assert refused.value.problem == f"unknown version '1.20'; known: {', '.join(SELECTABLE)}"


def test_the_newest_version_is_the_default_configuration():
    assert default_config(CURRENT, {}) == SchedulerConfig()


def test_the_node_controllers_of_1_16_have_the_gates_of_1_16():
    assert release_of("1.16").node_lifecycle == V1_16


@pytest.mark.parametrize(
    ("version", "gate", "field", "value"),
    [
        ("1.16", "NodeLease", "uses_leases", False),
        ("1.16", "TaintNodesByCondition", "taints_by_condition", False),
        ("1.16", "NodeDisruptionExclusion", "excludes_labelled", True),
        ("1.19", "LegacyNodeRoleBehavior", "excludes_masters", False),
    ],
)
def test_a_gate_sets_its_field_of_the_node_controllers(version, gate, field, value):
    changed = release_of(version, {gate: value}).node_lifecycle
    assert getattr(changed, field) is value
    assert getattr(release_of(version).node_lifecycle, field) is not value


def test_gates_of_other_components():
    """Evictions, kubelets, the scheduler and admission each have a gate."""
    assert not release_of("1.16", {"TaintBasedEvictions": False}).taint_based_evictions
    assert not release_of("1.16", {"NodeLease": False}).node_leases
    assert not release_of("1.16").preemption_policies
    assert release_of("1.16", {"NonPreemptingPriority": True}).preemption_policies
    popping = release_of("1.36", {"SchedulerPopFromBackoffQ": False})
    assert not popping.scheduler.backoff.pop_from_backoff
    by_condition = release_of("1.16", {"TaintNodesByCondition": False}).scheduler
    assert by_condition.plugins[0] == ("CheckNodeCondition", 0)
    assert release_of("1.16").scheduler.plugins[0] == ("PrioritySort", 0)


@pytest.mark.parametrize(
    ("version", "gates", "problem"),
    [
        (
            "1.19",
            {"TaintNodesByCondition": False},
            "TaintNodesByCondition: Fairlead has no such gate for",
        ),
        (
            "1.36",
            {"NodeLease": True},
            "NodeLease: Fairlead has no such gate for Kubernetes 1.36; known: ",
        ),
        (
            "1.36",
            {"GangSchedulin": True},
            (
                "GangSchedulin: Fairlead has no such gate for Kubernetes 1.36; did you mean "
                "GangScheduling? known: DRADeviceTaintRules, GangScheduling, GenericWorkload, "
                "MaxUnavailableStatefulSet, SchedulerPopFromBackoffQ, WorkloadAwarePreemption, and "
                "59 with a fixed value (docs/versions.md)"
            ),
        ),
        ("1.19", {"NodeLease": False}, "NodeLease: Forbidden: Fairlead supports only true for"),
        (
            "1.36",
            {"WorkloadWithJob": True},
            "WorkloadWithJob: Forbidden: Fairlead supports only false",
        ),
    ],
)
def test_a_gate_that_a_version_lacks_or_locks_is_refused_by_name(version, gates, problem):
    with pytest.raises(ConfigurationError) as refused:
        release_of(version, gates)
    assert str(refused.value).startswith(problem)


@pytest.mark.parametrize(
    ("gates", "problem"),
    [
        (
            {"GangScheduling": True},
            "GangScheduling is enabled, but depends on {} [GenericWorkload]",
        ),
        (
            {"GenericWorkload": True, "WorkloadAwarePreemption": True},
            "WorkloadAwarePreemption is enabled, but depends on {} [GangScheduling]",
        ),
    ],
)
def test_a_gate_needs_the_gates_that_it_depends_on(gates, problem):
    with pytest.raises(ConfigurationError) as refused:
        check_required_gates("1.36", gates, "--feature-gates")
    problem = problem.format("features that are disabled:")
    assert str(refused.value) == f"--feature-gates: {problem}"
    check_required_gates("1.36", {**gates, "GenericWorkload": True, "GangScheduling": True}, "f")


def test_the_gang_scheduling_plugin_depends_on_its_gate():
    on = release_of("1.36", {"GenericWorkload": True, "GangScheduling": True}).scheduler
    assert on.plugins[-1] == ("GangScheduling", 0)
    assert on.pod_groups
    assert not on.preemption.by_group
    assert release_of("1.36").scheduler == V1_36


def test_gates_of_a_release_override_other_gates():
    """Gates of the command line override those of a file."""
    release = release_of("1.36", {"SchedulerPopFromBackoffQ": False})
    merged = release.with_defaults({"SchedulerPopFromBackoffQ": True})
    assert not merged.is_on("SchedulerPopFromBackoffQ")


def test_gates_are_read_from_text():
    assert parse_gates("x", "A=true, B=False,") == {"A": True, "B": False}
    with pytest.raises(ConfigurationError, match="x: A: 'yes' is neither true nor false"):
        parse_gates("x", "A=yes")
