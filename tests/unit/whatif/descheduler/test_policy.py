"""Invalid policies are refused in one line with the field; the what-if shows the new nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.unit.whatif.descheduler.conftest import names, node, pod

from fairlead.cli import exit_code
from fairlead.cli.main import run as run_command
from fairlead.whatif.input.error import InputError


@pytest.mark.parametrize(
    ("name", "args", "evictor", "point", "problem"),
    [
        ("PodLifeTyme", {}, {}, "deschedule", "did you mean PodLifeTime?"),
        ("LowNodeUtilization", {}, {}, "deschedule", "unknown strategy"),
        ("PodLifeTime", {}, {}, "deschedule", "maxPodLifeTimeSeconds: is required"),
        ("PodLifeTime", {"maxPodLifeTimeSeconds": 1, "days": 2}, {}, "deschedule", "days: unknown"),
        ("PodLifeTime", {"maxPodLifeTimeSeconds": 1, "states": ["OutOfcpu"]}, {},
         "deschedule", "PodLifeTime.states"),
        ("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 1, "states": ["Failed"]}, {},
         "deschedule", "RemovePodsHavingTooManyRestarts.states"),
        ("HighNodeUtilization", {"thresholds": {"cpu": 20}, "evictionLimits": {"node": 1}}, {},
         "balance", "HighNodeUtilization.evictionLimits: is supported only by LowNode"),
        ("HighNodeUtilization", {"thresholds": {"cpu": 20}, "evictionModes": ["All"]}, {},
         "balance", "HighNodeUtilization.evictionModes"),
        ("LowNodeUtilization", {"thresholds": {"cpu": 101}, "targetThresholds": {"cpu": 50}}, {},
         "balance", "LowNodeUtilization.thresholds.cpu: 101 is not a percentage"),
        ("LowNodeUtilization", {"thresholds": {"cpu": 10}}, {}, "balance", "the same resources"),
        ("LowNodeUtilization", {"thresholds": {"cpu": 1}, "metricsUtilization": {}}, {}, "balance",
         "metricsUtilization: unknown field"),
        ("RemovePodsViolatingNodeAffinity", {"nodeAffinityType": ["soft"]}, {}, "deschedule",
         "nodeAffinityType"),
        ("RemovePodsViolatingNodeAffinity", {"nodeAffinityType": []}, {}, "deschedule", "is empty"),
        ("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 0}, {}, "deschedule", ">= 1"),
        ("PodLifeTime", {"maxPodLifeTimeSeconds": 1, "labelSelector": {"matchExpressions": [
            {"key": "a", "operator": "Near"}]}}, {}, "deschedule", "unknown operator 'Near'"),
        ("PodLifeTime", {"maxPodLifeTimeSeconds": 1, "namespaces": {"include": ["a"],
         "exclude": ["b"]}}, {}, "deschedule", "PodLifeTime.namespaces: has include and exclude"),
        ("LowNodeUtilization", {"thresholds": {"cpu": 80}, "targetThresholds": {"cpu": 50}}, {},
         "balance", "thresholds.cpu: 80 is more than its target of 50"),
        ("HighNodeUtilization", {"thresholds": {"cpu": 20}, "evictableNamespaces": {
            "include": ["a"]}}, {}, "balance",
         "HighNodeUtilization.evictableNamespaces.include: is not supported"),
        ("RemoveDuplicates", {}, {"priorityThreshold": {"name": "a", "value": 1}}, "balance",
         "has value and name"),
        ("RemoveDuplicates", {}, {"minPodAge": "soon"}, "balance", "DefaultEvictor.minPodAge"),
        ("RemoveDuplicates", {}, {"nodeSelector": "a=b=c"}, "balance", "nodeSelector"),
        ("RemoveDuplicates", {}, {"priorityThreshold": {"name": "gone"}}, "balance",
         "no PriorityClass gone"),
        ("RemoveDuplicates", {}, {"podProtections": {"extraEnabled": ["All"]}}, "balance",
         "unknown protection 'All'"),
    ],
)  # fmt: skip
def test_a_wrong_policy_is_refused(run, name, args, evictor, point, problem) -> None:
    with pytest.raises(InputError) as refusal:
        run([node("one"), node("two"), pod("a", "one")], name, args, evictor, point)
    assert problem in str(refusal.value)
    assert str(refusal.value).count("policy.yaml") == 1
    assert "\n" not in str(refusal.value)


def test_a_deviation_below_the_average_may_exceed_the_deviation_above_it(run) -> None:
    """upstream: nodeutilization/validation.go: validateLowNodeUtilizationThresholds."""
    args = {
        "thresholds": {"cpu": 30},
        "targetThresholds": {"cpu": 10},
        "useDeviationThresholds": True,
    }
    objects = [node("one"), node("two"), pod("a", "one", cpu="3"), pod("b", "one", cpu="500m")]
    assert names(run(objects, "LowNodeUtilization", args, point="balance")) == ["a"]


def test_a_file_of_another_kind_is_not_a_policy(tmp_path: Path, capsys) -> None:
    dump, policy = tmp_path / "dump.yaml", tmp_path / "policy.yaml"
    dump.write_text(yaml.safe_dump_all([node("one"), node("two"), pod("a", "one")]))
    policy.write_text("apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\n")
    status = run_command(["whatif", str(dump), "--descheduler", str(policy)])
    assert status == exit_code.BAD_INPUT
    assert "is not a DeschedulerPolicy of descheduler/v1alpha2" in capsys.readouterr().err


def test_a_what_if_shows_the_new_nodes_of_evicted_pods(tmp_path: Path, capsys) -> None:
    dump, policy = tmp_path / "dump.yaml", tmp_path / "policy.yaml"
    objects = [node("full"), node("empty"), *(pod(f"w{n}", "full") for n in range(8))]
    dump.write_text(yaml.safe_dump_all(objects))
    args = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}
    profile = {"pluginConfig": [{"name": "LowNodeUtilization", "args": args}],
               "plugins": {"balance": {"enabled": ["LowNodeUtilization"]}}}  # fmt: skip
    content = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy",
               "profiles": [profile]}  # fmt: skip
    policy.write_text(yaml.safe_dump(content))
    run_command(["whatif", str(dump), "--descheduler", str(policy), "--no-report"])
    printed = capsys.readouterr().out
    assert "The descheduler evicts 4 pods in one run: 4 by LowNodeUtilization." in printed
    assert "EVICTED (4), MOVED (4)" in printed
    assert "descheduler: LowNodeUtilization" in printed
