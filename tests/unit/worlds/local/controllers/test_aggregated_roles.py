"""The rules of ClusterRoles with an aggregation rule."""

from __future__ import annotations

import pytest

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
TO_VIEW = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
MERGE = "application/merge-patch+json"


def rule(resource):
    return {"apiGroups": ["example.com"], "resources": [resource], "verbs": ["get"]}


@pytest.fixture
def cluster(make_cluster):
    return make_cluster(nodes=1)


@pytest.fixture
def create(cluster):
    """Creates a ClusterRole with these labels and rules."""

    def create(name, labels, *rules, **fields):
        meta = {"name": name, "labels": labels}
        cluster.ask("POST", ROLES, {"metadata": meta, "rules": list(rules), **fields})

    return create


def rules_of(cluster, name):
    return cluster.ask("GET", f"{ROLES}/{name}")["rules"]


def test_a_role_has_the_different_rules_of_the_roles_that_it_selects(cluster, create):
    """The selectors come first, then the names; rules that users write are replaced."""
    for name, label, resource in (("b", "x", "bs"), ("a", "x", "as"), ("c", "y", "cs")):
        create(name, {"part": label}, rule(resource), rule("all"))
    create("none", {"part": "z"}, rule("zs"))
    selectors = [{"matchLabels": {"part": label}} for label in ("y", "x")]
    total = {"aggregationRule": {"clusterRoleSelectors": selectors}}
    create("total", {"part": "x"}, rule("own"), **total)
    expected = [rule("cs"), rule("all"), rule("as"), rule("bs")]
    assert rules_of(cluster, "total") == expected
    cluster.ask("PATCH", f"{ROLES}/a", {"metadata": {"labels": None}}, MERGE)
    cluster.ask("DELETE", f"{ROLES}/c")
    assert rules_of(cluster, "total") == [rule("bs"), rule("all")]


def test_a_role_aggregates_aggregated_roles(cluster, create):
    """The default role `admin` aggregates `edit`, and `edit` aggregates `view`."""
    create("widgets", TO_VIEW, rule("widgets"))
    assert all(rule("widgets") in rules_of(cluster, name) for name in ("view", "edit", "admin"))


def test_a_role_that_is_up_to_date_is_not_written_again(cluster, create):
    create("widgets", TO_VIEW, rule("widgets"))
    before = cluster.ask("GET", f"{ROLES}/view")
    create("other", {}, rule("others"))
    assert cluster.ask("GET", f"{ROLES}/view") == before
