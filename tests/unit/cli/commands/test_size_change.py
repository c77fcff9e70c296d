"""`fairlead size` answers for the cluster after --apply and --scale."""

from __future__ import annotations

import json

from fairlead.cli.main import run

READY = {"type": "Ready", "status": "True"}


def node(name: str) -> dict:
    offered = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": offered, "capacity": offered, "conditions": [READY]},
    }


def deployment(name: str, replicas: int) -> dict:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def sized(tmp_path, capsys, *options: str) -> dict:
    dump, new = tmp_path / "dump.json", tmp_path / "new.json"
    items = [node("a"), node("b"), deployment("web", 2)]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    new.write_text(json.dumps(deployment("api", 4)))
    words = [str(new) if one == "NEW" else one for one in options]
    assert run(["size", str(dump), "--output", "json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_nodes_are_those_for_the_changed_cluster(tmp_path, capsys):
    """A node has room for two pods."""
    counts = {
        options: sized(tmp_path, capsys, *options.split())["nodes"]
        for options in ("", "--scale deploy/web=6", "--apply NEW")
    }
    assert counts == {"": 1, "--scale deploy/web=6": 3, "--apply NEW": 3}


def test_the_answer_says_that_it_is_about_a_change(tmp_path, capsys):
    changed = sized(tmp_path, capsys, "--scale", "deploy/web=6")
    assert changed["notes"][0] == ("This answer is about the cluster after --scale deploy/web=6.")
    assert "On today's nodes, 2 of the pods wait for a node." in changed["findings"]
    unchanged = sized(tmp_path, capsys)
    assert not any("after --" in note for note in unchanged["notes"])
