"""Kubernetes versions and feature gates of options and scenarios, and their effects in a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fairlead.whatif.configuration.release import ReleaseChoice, Releases, read_releases
from fairlead.whatif.input.error import InputError
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario
from fairlead.whatif.snapshot.dump_note import IGNORED_GROUPS

EXAMPLES = Path(__file__).parents[4] / "examples"
NODES = "cluster: {generated: {nodes: 2}}\n"
OUTAGE = (
    NODES
    + """
events:
- {at: 30s, fail-node: node-0, for: 5m}
- at: 2m
  create:
    apiVersion: v1
    kind: Pod
    metadata: {name: late, namespace: default}
    spec: {containers: [{name: c, image: i}], nodeSelector: {kubernetes.io/hostname: node-0}}
duration: 4m
"""
)
UNREACHABLE = "node.kubernetes.io/unreachable"


@pytest.fixture
def experiment(tmp_path):
    """Reads a scenario as the command line does."""

    def make(text, version="", gates=""):
        path = tmp_path / "scenario.yaml"
        path.write_text(text)
        choice = ReleaseChoice(version, gates)
        return experiment_of(str(path), read_scenario(str(path)), release=choice)

    return make


def parts(releases):
    return releases.general.version, releases.nodes.version


def test_a_scenario_names_its_version_and_an_option_wins(experiment):
    text = NODES + "settings: {behave-like: 1.19}"
    assert parts(experiment(text).releases) == ("1.19", "1.19")
    assert parts(experiment(text, "1.36").releases) == ("1.36", "1.36")


def test_the_node_controllers_may_have_a_version_of_their_own(experiment):
    text = NODES + (
        "settings: {controller-manager: {version: 1.16, "
        "flags: {feature-gates: TaintBasedEvictions=false, enable-taint-manager: false}}}"
    )
    found = experiment(text)
    assert parts(found.releases) == ("1.36", "1.16")
    assert not found.node_lifecycle.taint_based_evictions
    assert found.scheduler.version.version == "1.36"
    both = experiment(text, gates="SchedulerPopFromBackoffQ=false,NodeLease=false")
    assert not both.scheduler.backoff.pop_from_backoff
    assert not both.kubelet.renews_leases


@pytest.mark.parametrize(
    ("settings", "gates", "line"),
    [
        ("behave-like: 1.2", "", "settings.behave-like: unknown version '1.2'; known: 1.16, 1.19"),
        (
            "feature-gates: {X: true}",
            "",
            "settings.feature-gates: X: Fairlead has no such gate for",
        ),
        (
            "behave-like: 1.16",
            "X=true",
            "--feature-gates: X: Fairlead has no such gate for Kubernetes 1.16",
        ),
        ("behave-like: 1.16", "X", "--feature-gates: 'X' is not GATE=true or GATE=false"),
        (
            "behave-like: 1.36",
            "GenericWorkload=true,GenericWorkload=false",
            "--feature-gates: GenericWorkload is both true and false",
        ),
    ],
)
def test_an_invalid_version_or_gate_is_refused_with_its_field(experiment, settings, gates, line):
    with pytest.raises(InputError) as refused:
        experiment(NODES + f"settings: {{{settings}}}", gates=gates)
    assert line in str(refused.value)


def test_the_answer_states_version_and_gates_in_one_line():
    releases = read_releases(
        ReleaseChoice("1.19"), ReleaseChoice(), ReleaseChoice(gates="NonPreemptingPriority=false")
    )
    assert releases.words == (
        "Behaves like Kubernetes 1.19: scheduler 1.19, node controllers 1.16, "
        "priority admission 1.21; all else 1.36. Feature gates: NonPreemptingPriority=false."
    )
    assert releases.as_json()["behaves_like"]["node_controllers"] == "1.16"
    assert (Releases().words, Releases().as_json()) == ("", {})
    gates = ReleaseChoice(gates="GenericWorkload=true")
    newest = read_releases(ReleaseChoice(), ReleaseChoice(), gates)
    assert newest.words == "Behaves like Kubernetes 1.36. Feature gates: GenericWorkload=true."


# --- the gates of 1.16, as a run shows them ---------------------------------------------------


def taints(finished, name="node-0"):
    (node,) = (o for o in finished.objects if o["metadata"]["name"] == name and o["kind"] == "Node")
    return {(one["key"], one["effect"]) for one in node["spec"].get("taints", ())}


@pytest.mark.parametrize(
    ("gates", "effects"),
    [
        ("", {"NoSchedule", "NoExecute"}),
        ("TaintNodesByCondition=false", {"NoExecute"}),
        ("TaintBasedEvictions=false", {"NoSchedule"}),
    ],
)
def test_the_taints_of_an_unreachable_node_depend_on_the_feature_gates(experiment, gates, effects):
    finished = run_experiment(experiment(OUTAGE, "1.16", gates))
    assert taints(finished) == {(UNREACHABLE, effect) for effect in effects}


@pytest.mark.parametrize(
    ("gates", "reason"),
    [
        ("", "node(s) had taint {node.kubernetes.io/unreachable: }, that the pod didn't"),
        ("TaintNodesByCondition=false", "node(s) were not ready"),
    ],
)
def test_without_condition_taints_the_scheduler_reads_conditions(experiment, gates, reason):
    """The predicates of 1.16 have the effect of the taints of later versions."""
    gates = ",".join(filter(None, ("TaintBasedEvictions=false", gates)))
    (pod,) = run_experiment(experiment(OUTAGE, "1.16", gates)).outcome.pending
    assert reason in pod.reason


def test_without_leases_kubelets_post_their_status(experiment):
    """A healthy node stays ready, and no lease exists."""
    finished = run_experiment(experiment(OUTAGE, "1.16", "NodeLease=false"))
    assert taints(finished, "node-1") == set()
    assert (UNREACHABLE, "NoExecute") in taints(finished)
    assert not [one for one in finished.objects if one["kind"] == "Lease"]
    leased = run_experiment(experiment(OUTAGE, "1.16"))
    assert [one for one in leased.objects if one["kind"] == "Lease"]


def test_gates_of_the_configuration_file_apply_to_all_components_and_are_named(
    experiment, tmp_path
):
    """They apply to the scheduler, to admission (the priority of the gang) and to the answer."""
    names = ("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption")
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": dict.fromkeys(names, True),
    }
    (tmp_path / "gates.yaml").write_text(json.dumps(config))
    gangs = (EXAMPLES / "pod-groups" / "preemption.yaml").read_text()
    text = re.sub(r"feature-gates: {.*}", "scheduler: gates.yaml", gangs)
    one = experiment(text)
    assert one.followed.gates == dict.fromkeys(names, True)
    assert len(run_experiment(one).outcome.preempted) == 3
    one = experiment(text, gates="WorkloadAwarePreemption=false")
    assert one.followed.gates == {**dict.fromkeys(names, True), names[2]: False}
    assert len(run_experiment(one).outcome.preempted) != 3


@pytest.mark.parametrize("is_on", [False, True])
def test_without_the_gate_a_note_says_that_pod_groups_have_no_effect(experiment, is_on):
    """Only a cluster with the gate has these PodGroups, but the gate is not part of a dump."""
    gangs = (EXAMPLES / "pod-groups" / "gang.yaml").read_text()
    text = re.sub(r"settings: .*", "", gangs)
    found = run_experiment(experiment(text, gates=f"GenericWorkload={str(is_on).lower()}"))
    assert (IGNORED_GROUPS in found.outcome.notes) is not is_on
