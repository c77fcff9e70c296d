"""Notes on manifests: versions, hooks, fields that kubectl apply keeps, and empty budgets."""

from __future__ import annotations

import json

import pytest

from fairlead.whatif.change.change_script import script_of_change
from fairlead.whatif.change.cluster_change import ClusterChange

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.fixture
def notes(make, snapshot, write):
    """Returns the notes on the apply of `manifest` in a cluster with one node and `existing`."""

    def apply(manifest, *existing):
        change = ClusterChange(apply=(write("new.json", manifest),))
        return script_of_change(change, snapshot(make.node(), *existing)).notes

    return apply


@pytest.mark.parametrize(
    ("version", "noted"),
    [
        ("policy/v1", False),
        ("policy/v1beta1", True),
    ],
)
def test_a_note_names_manifests_with_a_version_that_is_not_served(notes, version, noted):
    metadata = {"name": "web", "namespace": "default"}
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    found = notes(
        {
            "apiVersion": version,
            "kind": "PodDisruptionBudget",
            "metadata": metadata,
            "spec": spec,
        }
    )
    says = "PodDisruptionBudget default/web (policy/v1beta1, not policy/v1)"
    assert any(says in note for note in found) is noted


def test_custom_resources_and_other_groups_have_no_note(notes):
    metadata = {"name": "web", "namespace": "default"}
    job = {"apiVersion": "batch.example.com/v1alpha1", "kind": "Job", "metadata": metadata}
    assert not any("does not serve" in note for note in notes(job))


@pytest.mark.parametrize(
    ("annotation", "value", "noted"),
    [
        ("helm.sh/hook", "test", True),
        ("helm.sh/hook", "pre-delete", True),
        ("helm.sh/hook", "pre-install,pre-upgrade", False),
        ("argocd.argoproj.io/hook", "PreSync", False),
        ("argocd.argoproj.io/hook", "SyncFail", True),
    ],
)
def test_a_note_names_hooks_that_an_upgrade_does_not_create(notes, make, annotation, value, noted):
    pod = make.pod("check")
    pod["metadata"]["annotations"] = {annotation: value}
    says = f"does: Pod default/check ({annotation}: {value}). Apply the manifests without them"
    assert any(says in note for note in notes(pod)) is noted


def test_a_note_names_the_fields_that_only_the_existing_object_has(notes, make):
    old = make.workload(nodeSelector={"disk": "ssd"}, dnsPolicy="ClusterFirst")
    old["spec"]["template"]["spec"]["containers"].append({"name": "log", "image": "l"})
    old["spec"]["template"]["metadata"]["annotations"] = {"restarted": "now"}
    new = make.workload()
    says = "spec.template.spec.containers[log], spec.template.spec.nodeSelector of Deployment"
    assert any(says in note for note in notes(new, old))
    old["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(new)}
    assert not any(says in note for note in notes(new, old))


def test_defaults_and_replicas_of_an_autoscaler_are_no_kept_fields(notes, make):
    old = make.workload(replicas=5, dnsPolicy="ClusterFirst", schedulerName="default-scheduler")
    old["spec"]["strategy"] = {"type": "RollingUpdate"}
    new = make.workload()
    del new["spec"]["replicas"]
    assert not any("keeps fields" in note for note in notes(new, old))


@pytest.mark.parametrize(("label", "noted"), [("web", False), ("wbe", True)])
def test_a_note_names_a_budget_that_selects_nothing(notes, make, label, noted):
    """The template of a workload without pods counts, but only in the namespace of the budget."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": label}}},
    }
    elsewhere = make.workload(name="wbe", namespace="other", replicas=0)
    found = notes(budget, make.workload(replicas=0), elsewhere)
    says = "no pod template of a workload: PodDisruptionBudget default/web."
    assert any(says in note for note in found) is noted
