"""Planning commands say which checks of admission they leave out, as what-ifs do."""

from __future__ import annotations

import json

import pytest
from tests.unit.cli.commands.test_planning_exit_codes import node, pod

from fairlead.cli.main import run

HOOK = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "sidecars"},
    "webhooks": [
        {
            "name": "inject.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"url": "https://example.com/inject"},
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["pods"],
                }
            ],
        }
    ],
}
NAMESPACES = (
    "Admission could not check new objects, because the dump lacks namespaces (NamespaceLifecycle)."
)
WEBHOOKS = "Admission webhooks are not called. Calls left out, by webhook: inject.example.com (1)."


@pytest.mark.parametrize(
    ("command", "evicts"),
    [
        (["fit", "--like", "rs/web"], True),
        (["drain-plan", "--nodes", "a"], True),
        (["drain-plan", "--nodes", "c"], False),
        (["upgrade-check", "--nodes", "a"], True),
        (["consolidate", "--nodes", "a"], True),
    ],
    ids=["fit", "drain", "drain of an empty node", "upgrade", "consolidate"],
)
def test_a_plan_that_creates_pods_names_the_checks_left_out(command, evicts, tmp_path, capsys):
    """Only a plan that creates or replaces a pod of rs/web has such notes; c has no pod."""
    web = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "uid": "1"}}
    web["metadata"]["namespace"] = "shop"
    running = pod("web-1", "1", nodeName="a")
    running["metadata"] |= {"namespace": "shop", "labels": {"app": "web"}, "uid": "2"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1"}
    running["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": running["spec"] | {"nodeName": ""}}
    web["spec"] = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    dump = tmp_path / "dump.json"
    nodes = [node(at, at) for at in "abc"]
    dump.write_text(json.dumps({"items": [*nodes, web, running, HOOK], "kind": "List"}))
    run([command[0], str(dump), *command[1:], "-o", "json"])
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert [notes.count(NAMESPACES), notes.count(WEBHOOKS)] == ([1, 1] if evicts else [0, 0])
