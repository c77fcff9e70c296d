"""Fields of disabled feature gates are dropped from new objects."""

from __future__ import annotations

import pytest

from fairlead.engine.configuration.release import release_of

SETS = "/apis/apps/v1/namespaces/default/statefulsets"


@pytest.mark.parametrize(
    ("is_on", "stored", "updated_at_once"),
    [(True, {"partition": 0, "maxUnavailable": 2}, 2), (False, {"partition": 0}, 1)],
)
def test_max_unavailable_of_stateful_sets_needs_its_feature_gate(
    make_cluster, is_on, stored, updated_at_once
):
    """Without the gate, which is off by default, pods are updated one by one."""
    gates = {"MaxUnavailableStatefulSet": is_on}
    cluster = make_cluster(nodes=1, release=release_of("", gates))
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {
        "replicas": 3,
        "selector": {"matchLabels": {"a": "b"}},
        "template": template,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
    }
    made = cluster.ask("POST", SETS, {"metadata": {"name": "db"}, "spec": spec})
    assert made["spec"]["updateStrategy"]["rollingUpdate"] == stored
    cluster.pass_time(60)
    made = cluster.ask("GET", f"{SETS}/db")
    large = {"requests": {"cpu": "64"}}
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = large
    cluster.ask("PUT", f"{SETS}/db", made)
    cluster.pass_time(60)
    pods = cluster.list("pod", "default")
    assert sum("nodeName" in one["spec"] for one in pods) == 3 - updated_at_once
