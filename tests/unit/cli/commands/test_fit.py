"""The command `fit` with an autoscaler or a file of several objects."""

from __future__ import annotations

import json

import pytest

from fairlead.cli.main import run

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"pool": "a"}},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]},
}
AUTOSCALER = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "ca", "namespace": "kube-system"},
    "spec": {
        "selector": {"matchLabels": {"app": "ca"}},
        "template": {
            "metadata": {"labels": {"app": "ca"}},
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "registry.example/cluster-autoscaler:v1.34",
                        "resources": {"requests": {"cpu": "3"}},
                    }
                ]
            },
        },
    },
}
HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}

# No server listens on this port, so each call fails and is ignored.
EXTENDERS = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: "http://127.0.0.1:9", filterVerb: filter, ignorable: true}]
"""


@pytest.fixture
def fit(tmp_path, capsys):
    """Returns the JSON answer of `fit` for a node group of 1 to 3 nodes, with further options."""
    dump, groups = (tmp_path / name for name in ("dump.json", "groups.yaml"))
    groups.write_text("node-groups:\n- {name: a, min: 1, max: 3, labels: {pool: a}}\n")
    pod = tmp_path / "pod.json"
    common = ["--pod", str(pod), "--autoscale", "cluster-autoscaler", "--node-groups", str(groups)]

    def answer(*options, others=(), **spec):
        items = [NODE, *others]
        dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        pod.write_text(json.dumps({**POD, "spec": {**POD["spec"], **spec}}))
        assert run(["fit", str(dump), *common, "-o", "json", *options]) == 0
        return json.loads(capsys.readouterr().out)

    return answer


def test_a_node_group_grows_to_its_maximum(fit):
    found = fit()
    assert (found["count"], found["stop"]["by"]) == (6, "autoscaler")


@pytest.mark.parametrize("preempts", [False, True])
def test_a_note_says_that_the_autoscaler_itself_is_preempted(fit, preempts):
    """New pods take the room of its only pod, and the simulated autoscaler still adds nodes."""
    options = ["--preempt"] if preempts else []
    found = fit(*options, others=[AUTOSCALER, HIGH], priorityClassName="high")
    note = (
        "deploy/kube-system/ca has no ready pod to the end, but the simulated cluster-autoscaler "
        "acts in this time too."
    )
    assert (found["preempted"], note in found["notes"]) == (preempts, preempts)


def test_no_note_says_that_extenders_are_not_called(fit, tmp_path):
    """The simulations with an autoscaler call them."""
    config = tmp_path / "scheduler.yaml"
    config.write_text(EXTENDERS)
    found = fit("--config", str(config), "--allow-extenders")
    assert found["count"] == 6
    assert not any("Extenders are not called" in note for note in found["notes"])


def test_objects_that_the_pods_of_the_file_need_are_created(tmp_path, capsys):
    """Admission finds the Namespace, the ServiceAccount and the PriorityClass of the file."""
    meta = {"name": "team"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "store"}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    in_team = {"name": "app", "namespace": "team"}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": in_team}
    spec = {**POD["spec"], "priorityClassName": "high", "serviceAccountName": "app"}
    written = [
        {**namespace, "metadata": meta},
        {**account, "metadata": in_team},
        HIGH,
        {**budget, "spec": {"minAvailable": 1, "selector": {}}},
        {**POD, "metadata": in_team, "spec": spec},
    ]
    dump, file = tmp_path / "dump.json", tmp_path / "team.json"
    other = {**account, "metadata": {"name": "default", "namespace": "store"}}
    known = [NODE, namespace, other]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": written}))

    def answer(*objects):
        dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        assert run(["fit", str(dump), "--pod", str(file), "-o", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    found = answer(*known)
    assert found["count"] == 2
    ignored = f"Ignored in {file}: PodDisruptionBudget team/app."
    assert [note for note in found["notes"] if "Ignored" in note] == [ignored]
    has = f"Ignored in {file}, because the dump has them: PriorityClass high."
    assert has in answer(*known, HIGH)["notes"]
