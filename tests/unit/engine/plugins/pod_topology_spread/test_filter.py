"""PodTopologySpread: the nodes that hard constraints reject."""

from __future__ import annotations

import pytest

from fairlead.engine.core.status import Code

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
SKEWED = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
WEB = {"app": "web"}
TAINT = {"key": "gpu", "effect": "NoSchedule"}


@pytest.fixture
def plugin(scene):
    return scene.plugin("PodTopologySpread")


def spread(key=ZONE, skew=1, *, selector=WEB, when="DoNotSchedule", **more):
    """A constraint on pods with the labels `selector`; None leaves the selector out."""
    found = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, **more}
    return found if selector is None else {**found, "labelSelector": {"matchLabels": selector}}


def web(scene, *constraints, labels=WEB, **more):
    """Return an incoming pod with these constraints."""
    return scene.incoming(labels=labels, topologySpreadConstraints=list(constraints), **more)


def refused(scene, plugin, pod):
    """Return the nodes that are rejected."""
    return [name for name, reason in scene.verdicts(plugin, pod).items() if reason]


@pytest.mark.parametrize("constraints", [[], [spread(when="ScheduleAnyway")]])
def test_only_hard_constraints_filter(scene, plugin, constraints):
    """Soft constraints and the system defaults do not."""
    scene.node("a", "z1")
    assert scene.verdicts(plugin, web(scene, *constraints)) == "skipped"


def test_the_domain_with_the_fewest_pods_sets_the_limit(scene, plugin):
    """count + 1 - lowest may be at most maxSkew; a domain without pods counts as 0."""
    for name, zone in (("a", "z1"), ("b", "z2"), ("c", "z3")):
        scene.node(name, zone)
    scene.pods("a", 2, labels=WEB)
    scene.pods("b", 1, labels=WEB)
    assert scene.verdicts(plugin, web(scene, spread())) == {"a": SKEWED, "b": SKEWED, "c": ""}
    assert scene.verdicts(plugin, web(scene, spread(skew=2))) == {"a": SKEWED, "b": "", "c": ""}
    assert refused(scene, plugin, web(scene, spread(skew=3))) == []


def test_a_node_without_the_key_is_unresolvable(scene, plugin):
    """The removal of pods adds no label to a node, but may reduce a skew."""
    scene.node("a", "z1")
    scene.node("b", "z2")
    scene.node("bare")
    scene.pods("a", 1, labels=WEB)
    pod = web(scene, spread())
    assert scene.verdicts(plugin, pod) == {"a": SKEWED, "b": "", "bare": NO_LABEL}
    state = scene.started(plugin, pod)
    codes = [plugin.filter(state, pod, scene.table.find(name)).code for name in ("a", "bare")]
    assert codes == [Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE]


def test_the_first_violated_constraint_is_reported(scene, plugin):
    """In the order of the spec."""
    scene.node("a", "z1", labels={HOST: None})
    scene.node("b", "z2")
    scene.node("c", "z1")
    scene.pods("c", 1, labels=WEB)
    by_zone, by_host = spread(), spread(HOST)
    assert scene.verdicts(plugin, web(scene, by_zone, by_host))["a"] == SKEWED
    assert scene.verdicts(plugin, web(scene, by_host, by_zone))["a"] == NO_LABEL


def test_a_node_counts_only_with_the_keys_of_all_hard_constraints(scene, plugin):
    """The pods on `a`, which lacks a key, count for no constraint."""
    scene.node("a", "z1", labels={HOST: None})
    scene.node("b", "z1")
    scene.node("c", "z2")
    scene.pods("a", 5, labels=WEB)
    assert refused(scene, plugin, web(scene, spread(), spread(HOST))) == ["a"]
    assert refused(scene, plugin, web(scene, spread())) == ["a", "b"]
    soft = spread(HOST, when="ScheduleAnyway")
    assert refused(scene, plugin, web(scene, spread(), soft)) == ["a", "b"]


@pytest.mark.parametrize(
    ("policy", "expected"), [({}, []), ({"nodeAffinityPolicy": "Ignore"}, ["b"])]
)
def test_nodes_the_pod_may_not_use_count_only_if_affinity_is_ignored(
    scene, plugin, policy, expected
):
    """nodeAffinityPolicy is Honor by default and covers nodeSelector."""
    scene.node("a", "z1")
    scene.node("b", "z2", labels={"disk": "ssd"})
    scene.pods("b", 1, labels=WEB)
    pod = web(scene, spread(**policy), nodeSelector={"disk": "ssd"})
    assert refused(scene, plugin, pod) == expected


def test_required_node_affinity_is_honored_as_well(scene, plugin):
    """Also affinity by node name."""
    scene.node("a", "z1")
    scene.node("b", "z2")
    scene.pods("b", 1, labels=WEB)
    field = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert refused(scene, plugin, web(scene, spread())) == ["b"]
    assert refused(scene, plugin, web(scene, spread(), affinity=affinity)) == []


@pytest.mark.parametrize(
    ("policy", "tolerations", "expected"),
    [
        ({}, [], ["b"]),
        ({"nodeTaintsPolicy": "Honor"}, [], []),
        ({"nodeTaintsPolicy": "Honor"}, [{"key": "gpu", "operator": "Exists"}], ["b"]),
    ],
)
def test_tainted_nodes_count_unless_taints_are_honored(
    scene, plugin, policy, tolerations, expected
):
    """nodeTaintsPolicy is Ignore by default: the empty domain of `a` sets the limit."""
    scene.node("a", "z1", taints=[TAINT])
    scene.node("b", "z2")
    scene.pods("b", 1, labels=WEB)
    assert refused(scene, plugin, web(scene, spread(**policy), tolerations=tolerations)) == expected


def test_cordoned_nodes_count(scene, plugin):
    """spec.unschedulable is no taint."""
    scene.node("a", "z1", cordoned=True)
    scene.node("b", "z2")
    scene.pods("b", 1, labels=WEB)
    assert refused(scene, plugin, web(scene, spread(nodeTaintsPolicy="Honor"))) == ["b"]


@pytest.mark.parametrize(("least", "expected"), [(1, []), (2, []), (3, ["a", "b"])])
def test_with_fewer_domains_than_min_domains_the_minimum_is_zero(scene, plugin, least, expected):
    """minDomains; both domains have a pod."""
    scene.node("a", "z1")
    scene.node("b", "z2")
    scene.pods("a", 1, labels=WEB)
    scene.pods("b", 1, labels=WEB)
    assert refused(scene, plugin, web(scene, spread(minDomains=least))) == expected


def test_a_pod_that_is_not_selected_does_not_count_itself(scene, plugin):
    """So it adds nothing to the skew."""
    scene.node("a", "z1")
    scene.node("b", "z2")
    scene.pods("a", 1, labels=WEB)
    assert refused(scene, plugin, web(scene, spread())) == ["a"]
    assert refused(scene, plugin, web(scene, spread(), labels={"app": "db"})) == []


@pytest.mark.parametrize(
    ("case", "more", "expected"),
    [
        ("the same namespace", {}, ["a"]),
        ("another namespace", {"namespace": "other"}, []),
        ("terminating", {"leaving": True}, []),
        ("other labels", {"labels": {"app": "db"}}, []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_only_matching_pods_of_the_namespace_that_do_not_terminate_count(
    scene, plugin, case, more, expected
):
    """Other pods do not change the count of a domain."""
    scene.node("a", "z1")
    scene.node("b", "z2")
    scene.pods("a", 1, **{"labels": WEB, **more})
    assert refused(scene, plugin, web(scene, spread())) == expected


def test_an_empty_selector_counts_only_the_pod_itself(scene, plugin):
    """The limit is maxSkew - 1, which no domain exceeds; hypothetical pods do count."""
    scene.node("a", "z1")
    scene.node("b", "z2")
    scene.pods("a", 5, labels=WEB)
    pod = web(scene, spread(selector={}))
    assert refused(scene, plugin, pod) == []
    state = scene.started(plugin, pod)
    plugin.add_pod(state, pod, scene.incoming("other"), scene.table.find("b"))
    assert scene.verdicts(plugin, pod, state) == {"a": "", "b": SKEWED}


def test_an_absent_selector_matches_nothing(scene, plugin):
    """Not even the pod itself."""
    scene.node("a", "z1")
    scene.pods("a", 5, labels=WEB)
    assert refused(scene, plugin, web(scene, spread(selector=None))) == []


def test_match_label_keys_narrow_the_selector_to_the_pods_own_values(scene, plugin):
    """Newer API servers merge them into the selector; here they have not."""
    scene.node("a", "z1")
    scene.node("b", "z2")
    scene.pods("a", 1, labels={**WEB, "version": "1"})
    keyed = spread(matchLabelKeys=["version", "absent"])
    old = web(scene, keyed, labels={**WEB, "version": "1"})
    new = web(scene, keyed, labels={**WEB, "version": "2"})
    assert refused(scene, plugin, old) == ["a"]
    assert refused(scene, plugin, new) == []


def test_add_pod_and_remove_pod_change_the_counts_of_their_state(scene, plugin):
    """Other states and the live counts are unchanged."""
    scene.node("a", "z1")
    scene.node("b", "z2")
    gone = scene.pod("gone", "a", labels=WEB)
    pod = web(scene, spread())
    state = scene.started(plugin, pod)
    supposed = state.clone()
    plugin.remove_pod(supposed, pod, gone, scene.table.find("a"))
    assert scene.verdicts(plugin, pod, supposed) == {"a": "", "b": ""}
    plugin.add_pod(supposed, pod, gone, scene.table.find("b"))
    assert scene.verdicts(plugin, pod, supposed) == {"a": "", "b": SKEWED}
    assert scene.verdicts(plugin, pod, state) == {"a": SKEWED, "b": ""}


def test_remove_pod_also_subtracts_terminating_pods_that_were_not_counted(scene, plugin):
    """Upstream's counts become too low, here -1."""
    scene.node("a", "z1")
    scene.node("b", "z2")
    leaving = scene.pod("leaving", "a", labels=WEB, leaving=True)
    pod = web(scene, spread())
    state = scene.started(plugin, pod)
    assert scene.verdicts(plugin, pod, state) == {"a": "", "b": ""}
    plugin.remove_pod(state, pod, leaving, scene.table.find("a"))
    assert scene.verdicts(plugin, pod, state) == {"a": "", "b": SKEWED}


def test_add_pod_ignores_other_namespaces_and_excluded_nodes(scene, plugin):
    """By the rules of counting, except for terminating pods and empty selectors."""
    scene.node("a", "z1")
    scene.node("b", "z2")
    scene.node("bare")
    stranger = scene.incoming("stranger", labels=WEB, namespace="other")
    twin = scene.incoming("twin", labels=WEB)
    pod = web(scene, spread())
    state = scene.started(plugin, pod)
    plugin.add_pod(state, pod, stranger, scene.table.find("a"))
    plugin.add_pod(state, pod, twin, scene.table.find("bare"))
    assert scene.verdicts(plugin, pod, state) == {"a": "", "b": "", "bare": NO_LABEL}


def test_hard_default_constraints_apply_to_pods_selected_by_a_service(new_scene):
    """defaultingType List, with the selector of a Service."""
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultingType": "List", "defaultConstraints": [constraint]}
    scene = new_scene({"PodTopologySpread": args})
    plugin = scene.plugin("PodTopologySpread")
    scene.node("a", "z1")
    scene.node("b", "z2")
    scene.pods("a", 1, labels=WEB)
    assert scene.verdicts(plugin, scene.incoming(labels=WEB)) == "skipped"
    service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": WEB}}
    scene.put({"apiVersion": "v1", "kind": "Service", **service})
    assert refused(scene, plugin, scene.incoming(labels=WEB)) == ["a"]
    own = web(scene, spread(when="ScheduleAnyway"))
    assert scene.verdicts(plugin, own) == "skipped"
