"""PodTopologySpread: the scores of nodes by soft constraints."""

from __future__ import annotations

from math import log

import pytest

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
WEB = {"app": "web"}
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "controller": True}


@pytest.fixture
def plugin(scene):
    return scene.plugin("PodTopologySpread")


def soft(key=ZONE, skew=1, *, selector=WEB, **more):
    """A soft constraint on pods with the labels `selector`; None leaves the selector out."""
    found = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway", **more}
    return found if selector is None else {**found, "labelSelector": {"matchLabels": selector}}


def web(scene, *constraints, labels=WEB, **more):
    """Return an incoming pod with these constraints."""
    return scene.incoming(labels=labels, topologySpreadConstraints=list(constraints), **more)


def weight(domains, count, skew=1):
    """Return the raw score of one constraint, before rounding."""
    return count * log(domains + 2) + skew - 1


def three_zones(scene):
    """Nodes a, b, c in one zone each, with 3, 1 and 0 web pods."""
    for name, zone, count in (("a", "z1", 3), ("b", "z2", 1), ("c", "z3", 0)):
        scene.node(name, zone)
        scene.pods(name, count, labels=WEB)


def service(selector, name="s", namespace="default"):
    """A Service of the default namespace."""
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": selector}}


def workload(kind, selector, name="rs"):
    """A ReplicaSet or StatefulSet of the default namespace."""
    meta = {"name": name, "namespace": "default"}
    spec = {"selector": {"matchLabels": selector}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec}


def test_a_domain_with_more_pods_has_a_lower_score(scene, plugin):
    """count × ln(domains + 2) + maxSkew - 1; the worst gets 100 × lowest ÷ highest."""
    three_zones(scene)
    pod = web(scene, soft(skew=3))
    expected = {n: round(weight(3, c, 3)) for n, c in (("a", 3), ("b", 1), ("c", 0))}
    assert scene.raw_scores(plugin, pod) == expected == {"a": 7, "b": 4, "c": 2}
    assert scene.scores(plugin, pod) == {"a": 28, "b": 71, "c": 100}


def test_without_matching_pods_all_nodes_have_the_highest_score(scene, plugin):
    """If all raw scores are 0, all scores are 100."""
    three_zones(scene)
    pod = web(scene, soft(selector={"app": "none"}))
    assert scene.scores(plugin, pod) == {"a": 100, "b": 100, "c": 100}


@pytest.mark.parametrize("selector", [None, {}])
def test_selectors_without_matches_give_equal_scores(scene, plugin, selector):
    """maxSkew - 1 on all nodes; the plugin is not skipped."""
    three_zones(scene)
    pod = web(scene, soft(skew=4, selector=selector))
    assert scene.raw_scores(plugin, pod) == {"a": 3, "b": 3, "c": 3}
    assert scene.scores(plugin, pod) == {"a": 100, "b": 100, "c": 100}


def test_domains_are_those_of_the_feasible_nodes_but_pods_count_everywhere(scene, plugin):
    """The zone of an infeasible node is no domain, but its pods count in their zone."""
    three_zones(scene)
    scene.node("d", "z2")
    scene.pods("d", 2, labels=WEB)
    pod = web(scene, soft())
    assert scene.raw_scores(plugin, pod, "b", "c") == {"b": round(weight(2, 3)), "c": 0}


def test_each_feasible_node_is_a_domain_of_its_own(scene, plugin):
    """By hostname the node's own pods count; two nodes may even share the label's value."""
    scene.node("a", "z1", labels={HOST: "same"})
    scene.node("b", "z1", labels={HOST: "same"})
    scene.node("c", "z1")
    scene.pods("a", 2, labels=WEB)
    pod = web(scene, soft(HOST))
    assert scene.raw_scores(plugin, pod) == {"a": round(weight(3, 2)), "b": 0, "c": 0}


def test_policies_matter_for_zones_but_not_for_hostnames(scene, plugin):
    """The policies exclude pods on nodes that the pod's node selector excludes."""
    scene.node("a", "z1")
    scene.node("b", "z1", labels={"disk": "ssd"})
    scene.pods("a", 4, labels=WEB)
    more = {"nodeSelector": {"disk": "ssd"}}
    assert scene.raw_scores(plugin, web(scene, soft(), **more), "b") == {"b": 0}
    ignoring = soft(nodeAffinityPolicy="Ignore")
    assert scene.raw_scores(plugin, web(scene, ignoring, **more), "b") == {"b": 4}
    by_host = web(scene, soft(HOST), **more)
    assert scene.raw_scores(plugin, by_host, "a") == {"a": round(weight(1, 4))}


def test_nodes_that_lack_a_key_are_ignored(scene, plugin):
    """They score 0, and neither their domains nor their pods count."""
    three_zones(scene)
    scene.node("bare")
    scene.node("nameless", "z1", labels={HOST: None})
    scene.pods("nameless", 9, labels=WEB)
    pod = web(scene, soft(), soft(HOST))
    raw = {n: round(weight(3, c) + weight(3, c)) for n, c in (("a", 3), ("b", 1), ("c", 0))}
    assert scene.raw_scores(plugin, pod, "a", "b", "c") == raw
    expected = {"a": 0, "b": 70, "c": 100, "bare": 0, "nameless": 0}
    assert scene.scores(plugin, pod) == expected


def test_if_every_node_lacks_a_key_all_scores_are_zero(scene, plugin):
    """No node is ranked."""
    scene.node("bare")
    assert scene.scores(plugin, web(scene, soft())) == {"bare": 0}


def test_terminating_pods_and_other_namespaces_do_not_count(scene, plugin):
    """As for hard constraints."""
    three_zones(scene)
    scene.pods("c", 5, labels=WEB, leaving=True)
    scene.pods("c", 5, labels=WEB, namespace="other")
    assert scene.raw_scores(plugin, web(scene, soft()))["c"] == 0


def test_a_pod_with_only_hard_constraints_is_skipped(scene, plugin):
    """Own constraints of any kind replace the defaults."""
    three_zones(scene)
    scene.put(service(WEB))
    pod = web(scene, {**soft(), "whenUnsatisfiable": "DoNotSchedule"})
    assert plugin.scores_alike(pod)
    assert scene.scores(plugin, pod) == "skipped"


# --- the system's default constraints ----------------------------------------------------------


def test_by_default_pods_of_a_service_spread_over_hosts_and_zones(scene, plugin):
    """hostname with maxSkew 3 and zone with maxSkew 5."""
    three_zones(scene)
    scene.put(service(WEB))
    pod = scene.incoming(labels=WEB)
    expected = {
        name: round(weight(3, count, 3) + weight(3, count, 5))
        for name, count in (("a", 3), ("b", 1), ("c", 0))
    }
    assert scene.raw_scores(plugin, pod) == expected


def test_without_a_zone_a_node_keeps_the_other_default_constraint(scene, plugin):
    """The missing zones make up one domain more, but add nothing to the score."""
    three_zones(scene)
    for name in ("bare", "empty"):
        scene.node(name)
    scene.pods("bare", 2, labels=WEB)
    scene.put(service(WEB))
    raw = scene.raw_scores(plugin, scene.incoming(labels=WEB))
    assert raw["bare"] == round(weight(5, 2, 3))
    assert raw["a"] == round(weight(5, 3, 3) + weight(4, 3, 5))
    assert raw["empty"] == 2


def test_an_empty_zone_is_the_same_domain_as_none(scene, plugin):
    """Pods on nodes without a zone count for nodes whose zone is ""."""
    scene.node("a", "")
    scene.node("bare")
    scene.pods("bare", 2, labels=WEB)
    scene.put(service(WEB))
    raw = scene.raw_scores(plugin, scene.incoming(labels=WEB))
    assert raw == {
        "a": round(weight(2, 0, 3) + weight(1, 2, 5)),
        "bare": round(weight(2, 2, 3)),
    }


@pytest.mark.parametrize(
    ("case", "objects", "owner", "is_scored"),
    [
        ("nothing selects it", [], None, False),
        ("a Service selects it", [service(WEB)], None, True),
        ("a Service selects more labels", [service({**WEB, "tier": "fe"})], None, False),
        ("a Service selects others", [service({"app": "db"})], None, False),
        ("a Service of another namespace", [service(WEB, namespace="other")], None, False),
        ("a Service without selector", [service({})], None, False),
        ("a ReplicaSet owns it", [workload("ReplicaSet", WEB)], OWNER, True),
        ("the ReplicaSet is gone", [], OWNER, False),
        ("the ReplicaSet selects nothing", [workload("ReplicaSet", {})], OWNER, False),
        (
            "a StatefulSet owns it",
            [workload("StatefulSet", WEB)],
            {**OWNER, "kind": "StatefulSet"},
            True,
        ),
        (
            "the owner is not its controller",
            [workload("ReplicaSet", WEB)],
            {**OWNER, "controller": False},
            False,
        ),
        (
            "the owner is of another API group",
            [workload("ReplicaSet", WEB)],
            {**OWNER, "apiVersion": "extensions/v1beta1"},
            False,
        ),
        (
            "a ReplicationController owns it",
            [
                {
                    "apiVersion": "v1",
                    "kind": "ReplicationController",
                    "metadata": {"name": "rs", "namespace": "default"},
                    "spec": {"selector": WEB},
                }
            ],
            {**OWNER, "apiVersion": "v1", "kind": "ReplicationController"},
            True,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_default_constraints_need_a_selector(scene, plugin, case, objects, owner, is_scored):
    """The selector is that of the Services that select the pod, and of the existing controller."""
    three_zones(scene)
    for obj in objects:
        scene.put(obj)
    pod = scene.incoming(labels=WEB, owner=owner)
    assert plugin.scores_alike(pod) is not is_scored
    assert (scene.scores(plugin, pod) != "skipped") is is_scored


def test_default_constraints_count_pods_that_all_services_and_the_owner_select(scene, plugin):
    """Only pods that match all of these selectors."""
    three_zones(scene)
    scene.pods("b", 4, labels={**WEB, "tier": "fe", "rev": "1"})
    scene.put(service(WEB, "one"))
    scene.put(service({"tier": "fe"}, "two"))
    scene.put(workload("ReplicaSet", {"rev": "1"}))
    pod = scene.incoming(labels={**WEB, "tier": "fe", "rev": "2"}, owner=OWNER)
    counted = {"a": 0, "b": 4, "c": 0}
    assert scene.raw_scores(plugin, pod) == {
        name: round(weight(3, count, 3) + weight(3, count, 5)) for name, count in counted.items()
    }


def test_an_added_or_deleted_service_changes_the_defaults_at_once(scene, plugin):
    """The selector is cached until a related object changes."""
    three_zones(scene)
    pod = scene.incoming(labels=WEB)
    assert scene.scores(plugin, pod) == "skipped"
    scene.put(service(WEB))
    assert scene.scores(plugin, pod) != "skipped"
    scene.delete(service(WEB))
    assert scene.scores(plugin, pod) == "skipped"


def test_listed_default_constraints_ignore_nodes_that_lack_a_key(new_scene):
    """The system's own default constraints do not ignore such nodes."""
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    args = {"defaultingType": "List", "defaultConstraints": [constraint]}
    scene = new_scene({"PodTopologySpread": args})
    plugin = scene.plugin("PodTopologySpread")
    three_zones(scene)
    scene.node("bare")
    scene.put(service(WEB))
    expected = {"a": 0, "b": 60, "c": 100, "bare": 0}
    assert scene.scores(plugin, scene.incoming(labels=WEB)) == expected


def test_an_empty_list_turns_default_constraints_off(new_scene):
    """defaultingType List without constraints."""
    scene = new_scene({"PodTopologySpread": {"defaultingType": "List"}})
    plugin = scene.plugin("PodTopologySpread")
    three_zones(scene)
    scene.put(service(WEB))
    pod = scene.incoming(labels=WEB)
    assert plugin.scores_alike(pod)
    assert scene.scores(plugin, pod) == "skipped"
