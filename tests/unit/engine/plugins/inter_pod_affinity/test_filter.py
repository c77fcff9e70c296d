"""InterPodAffinity: the nodes that required terms reject."""

from __future__ import annotations

import pytest

from fairlead.engine.core.status import Code
from fairlead.engine.framework.cycle_state import CycleState

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
NOT_ATTRACTED = "node(s) didn't match pod affinity rules"
REPELLED = "node(s) didn't match pod anti-affinity rules"
BY_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
WEB, DB = {"app": "web"}, {"app": "db"}


@pytest.fixture
def plugin(scene):
    return scene.plugin("InterPodAffinity")


def term(labels, key=ZONE, **more):
    """A term for pods with `labels`; None leaves the selector out."""
    selector = {} if labels is None else {"labelSelector": {"matchLabels": labels}}
    return {"topologyKey": key, **selector, **more}


def near(*terms):
    """Required affinity."""
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(*terms):
    """Required anti-affinity."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


@pytest.fixture
def zones(scene):
    """Nodes a and b in z1, c in z2, and one that is in no zone."""
    for name, zone in (("a", "z1"), ("b", "z1"), ("c", "z2"), ("bare", None)):
        scene.node(name, zone)
    return scene


def open_nodes(scene, plugin, pod, state=None):
    """Return the nodes that are not rejected."""
    return [name for name, reason in scene.verdicts(plugin, pod, state).items() if not reason]


def test_a_pod_without_required_terms_is_skipped(zones, plugin):
    """Preferred terms do not filter."""
    wish = {"weight": 1, "podAffinityTerm": term(WEB)}
    soft = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    assert zones.verdicts(plugin, zones.incoming()) == "skipped"
    assert zones.verdicts(plugin, zones.incoming(affinity=soft)) == "skipped"


# --- affinity ----------------------------------------------------------------------------------


def test_affinity_admits_the_domains_of_matching_pods(zones, plugin):
    """Other nodes are unresolvable: removing pods creates no match."""
    zones.pods("a", 1, labels=WEB)
    pod = zones.incoming(affinity=near(term(WEB)))
    expected = {"a": "", "b": "", "c": NOT_ATTRACTED, "bare": NOT_ATTRACTED}
    assert zones.verdicts(plugin, pod) == expected
    status = plugin.filter(zones.started(plugin, pod), pod, zones.table.find("c"))
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_one_pod_must_match_all_terms(zones, plugin):
    """Two pods that match one term each do not attract."""
    zones.pods("a", 1, labels=WEB)
    zones.pods("a", 1, labels={"tier": "fe"})
    both = near(term(WEB), term({"tier": "fe"}))
    assert open_nodes(zones, plugin, zones.incoming(affinity=both)) == []
    zones.pods("c", 1, labels={**WEB, "tier": "fe"})
    assert open_nodes(zones, plugin, zones.incoming(affinity=both)) == ["c"]


def test_every_term_needs_its_own_domain(zones, plugin):
    """The same node and the same zone: only the node itself."""
    zones.pods("a", 1, labels=WEB)
    pod = zones.incoming(affinity=near(term(WEB), term(WEB, HOST)))
    assert open_nodes(zones, plugin, pod) == ["a"]


def test_terminating_pods_still_attract(zones, plugin):
    """They count until they are deleted."""
    zones.pods("a", 1, labels=WEB, leaving=True)
    pod = zones.incoming(affinity=near(term(WEB)))
    assert open_nodes(zones, plugin, pod) == ["a", "b"]


def test_the_first_pod_of_a_group_fits_every_node_with_the_keys(zones, plugin):
    """No pod matches anywhere, and the pod matches its own terms."""
    affinity = near(term(WEB))
    assert open_nodes(zones, plugin, zones.incoming(labels=WEB, affinity=affinity)) == [
        "a",
        "b",
        "c",
    ]
    assert open_nodes(zones, plugin, zones.incoming(labels=DB, affinity=affinity)) == []


def test_a_match_on_a_node_without_the_key_is_no_match(zones, plugin):
    """So the pod still is the first of its group."""
    zones.pods("bare", 1, labels=WEB)
    pod = zones.incoming(labels=WEB, affinity=near(term(WEB)))
    assert open_nodes(zones, plugin, pod) == ["a", "b", "c"]


def test_a_match_for_one_key_ends_the_first_pod_rule_for_all_keys(zones, plugin):
    """A pod on `bare` counts for the hostname, so z1 and z2 are rejected."""
    zones.pods("bare", 1, labels=WEB)
    pod = zones.incoming(labels=WEB, affinity=near(term(WEB), term(WEB, HOST)))
    assert open_nodes(zones, plugin, pod) == []


# --- anti-affinity -----------------------------------------------------------------------------


def test_anti_affinity_rejects_the_domains_of_matching_pods(zones, plugin):
    """Preemption may help; a node without the key passes."""
    zones.pods("a", 1, labels=WEB)
    pod = zones.incoming(affinity=apart(term(WEB)))
    expected = {"a": REPELLED, "b": REPELLED, "c": "", "bare": ""}
    assert zones.verdicts(plugin, pod) == expected
    status = plugin.filter(zones.started(plugin, pod), pod, zones.table.find("a"))
    assert status.code is Code.UNSCHEDULABLE


def test_one_matching_anti_affinity_term_rejects_a_domain(zones, plugin):
    """A pod that matches one of them is enough."""
    zones.pods("a", 1, labels=WEB)
    zones.pods("c", 1, labels=DB)
    pod = zones.incoming(affinity=apart(term(WEB, HOST), term(DB)))
    assert open_nodes(zones, plugin, pod) == ["b", "bare"]


@pytest.mark.parametrize("leaving", [False, True])
def test_anti_affinity_of_placed_pods_rejects_their_domains(zones, plugin, leaving):
    """Also while they are terminating."""
    zones.pod("hermit", "a", affinity=apart(term(WEB)), leaving=leaving)
    expected = {"a": BY_EXISTING, "b": BY_EXISTING, "c": "", "bare": ""}
    assert zones.verdicts(plugin, zones.incoming(labels=WEB)) == expected
    assert zones.verdicts(plugin, zones.incoming(labels=DB)) == "skipped"


def test_anti_affinity_on_a_node_without_the_key_matches_no_node(zones, plugin):
    """PreFilter returns Skip in this case."""
    zones.pod("hermit", "bare", affinity=apart(term(WEB)))
    assert zones.verdicts(plugin, zones.incoming(labels=WEB)) == "skipped"


def test_rules_are_checked_in_order(zones, plugin):
    """Affinity, anti-affinity of the pod, anti-affinity of placed pods."""
    zones.pods("a", 1, labels=DB)
    zones.pod("hermit", "a", affinity=apart(term(WEB, HOST)))
    wanted = {**near(term(DB)), **apart(term(DB, HOST))}
    pod = zones.incoming(labels=WEB, affinity=wanted)
    expected = {"a": REPELLED, "b": "", "c": NOT_ATTRACTED, "bare": NOT_ATTRACTED}
    assert zones.verdicts(plugin, pod) == expected
    assert zones.verdicts(plugin, zones.incoming(labels=WEB))["a"] == BY_EXISTING


# --- who is meant ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "more", "attracting"),
    [
        ("own namespace by default", {}, ["default"]),
        ("listed", {"namespaces": ["x", "y"]}, ["x", "y"]),
        ("selected", {"namespaceSelector": {"matchLabels": {"team": "t"}}}, ["y"]),
        ("all", {"namespaceSelector": {}}, ["default", "x", "y", "nowhere"]),
        (
            "listed or selected",
            {"namespaces": ["x"], "namespaceSelector": {"matchLabels": {"team": "t"}}},
            ["x", "y"],
        ),
        (
            "only existing namespaces are selected",
            {"namespaceSelector": {"matchExpressions": [{"key": "k", "operator": "DoesNotExist"}]}},
            ["default", "x", "y"],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_namespaces_of_the_incoming_pods_terms(zones, plugin, case, more, attracting):
    """A namespace without an object matches only by name or by `{}`."""
    for name, labels in (("default", {}), ("x", {}), ("y", {"team": "t"})):
        meta = {"name": name, "labels": labels}
        zones.put({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    found = []
    for name in ("default", "x", "y", "nowhere"):
        placed = zones.pod("friend", "a", labels=WEB, namespace=name)
        if open_nodes(zones, plugin, zones.incoming(affinity=near(term(WEB, **more)))):
            found.append(name)
        zones.gone(placed)
    assert found == attracting


@pytest.mark.parametrize(
    ("case", "more", "repelled"),
    [
        ("own namespace by default", {}, ["home"]),
        ("listed", {"namespaces": ["x", "nowhere"]}, ["x", "nowhere"]),
        ("selected", {"namespaceSelector": {"matchLabels": {"team": "t"}}}, ["x"]),
        ("all", {"namespaceSelector": {}}, ["home", "x", "nowhere"]),
        (
            "a namespace without object has no labels, which a selector may like",
            {
                "namespaceSelector": {
                    "matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]
                }
            },
            ["home", "nowhere"],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_namespaces_of_placed_pods_terms(zones, plugin, case, more, repelled):
    """The labels of the namespace of the incoming pod are used."""
    for name, labels in (("home", {}), ("x", {"team": "t"})):
        meta = {"name": name, "labels": labels}
        zones.put({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    zones.pod("hermit", "a", namespace="home", affinity=apart(term(WEB, **more)))
    found = [
        name
        for name in ("home", "x", "nowhere")
        if zones.verdicts(plugin, zones.incoming(labels=WEB, namespace=name)) != "skipped"
    ]
    assert found == repelled


def test_changed_namespace_labels_take_effect_at_once(zones, plugin):
    """This holds for the incoming pod's terms and for those of placed pods."""
    selecting = {"namespaceSelector": {"matchLabels": {"team": "t"}}}
    zones.pods("a", 1, labels=WEB, namespace="x")
    zones.pod("hermit", "c", affinity=apart(term(WEB, HOST, **selecting)))
    seeker = zones.incoming(affinity=near(term(WEB, **selecting)))
    stranger = zones.incoming(labels=WEB, namespace="x")
    for labels, attracted, refused in (({}, [], False), ({"team": "t"}, ["a", "b"], True)):
        meta = {"name": "x", "labels": labels}
        zones.put({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        assert open_nodes(zones, plugin, seeker) == attracted
        assert (zones.verdicts(plugin, stranger) != "skipped") is refused


@pytest.mark.parametrize(("labels", "matching"), [(None, []), ({}, [DB, WEB, {}]), (WEB, [WEB])])
def test_an_absent_selector_matches_nothing_and_an_empty_one_everything(
    scene, plugin, labels, matching
):
    """As for all label selectors."""
    scene.node("a", "z1")
    found = []
    for candidate in (DB, WEB, {}):
        placed = scene.pod("p", "a", labels=candidate)
        pod = scene.incoming(affinity=apart(term(labels)))
        if not open_nodes(scene, plugin, pod):
            found.append(candidate)
        scene.gone(placed)
    assert found == matching


# --- hypotheses --------------------------------------------------------------------------------


def test_add_pod_and_remove_pod_change_the_counts_of_their_state(zones, plugin):
    """This holds for affinity, anti-affinity, and anti-affinity of placed pods."""
    friend = zones.pod("friend", "a", labels=DB)
    enemy = zones.pod("enemy", "a", labels={"app": "enemy"})
    hermit = zones.pod("hermit", "a", affinity=apart(term(WEB, HOST)))
    wanted = {**near(term(DB)), **apart(term({"app": "enemy"}, HOST))}
    pod = zones.incoming(labels=WEB, affinity=wanted)
    state = zones.started(plugin, pod)
    node = zones.table.find("a")
    supposed = state.clone()
    plugin.remove_pod(supposed, pod, enemy, node)
    assert zones.verdicts(plugin, pod, supposed)["a"] == BY_EXISTING
    plugin.remove_pod(supposed, pod, hermit, node)
    assert zones.verdicts(plugin, pod, supposed)["a"] == ""
    plugin.remove_pod(supposed, pod, friend, node)
    assert zones.verdicts(plugin, pod, supposed)["a"] == NOT_ATTRACTED
    plugin.add_pod(supposed, pod, friend, zones.table.find("c"))
    assert open_nodes(zones, plugin, pod, supposed) == ["c"]
    assert zones.verdicts(plugin, pod, state)["a"] == REPELLED


def test_remove_pod_may_make_the_pod_the_first_of_its_group(zones, plugin):
    """The only matching pod is removed."""
    twin = zones.pod("twin", "a", labels=WEB)
    pod = zones.incoming(labels=WEB, affinity=near(term(WEB)))
    state = zones.started(plugin, pod)
    assert open_nodes(zones, plugin, pod, state) == ["a", "b"]
    plugin.remove_pod(state, pod, twin, zones.table.find("a"))
    assert open_nodes(zones, plugin, pod, state) == ["a", "b", "c"]


def test_add_pod_counts_anti_affinity_with_any_topology_key(zones, plugin):
    """The key may be one that no term of a placed pod has."""
    hermit = zones.incoming("hermit", affinity=apart(term(WEB, HOST)))
    pod = zones.incoming(labels=WEB, affinity=apart(term(DB)))
    state = zones.started(plugin, pod)
    plugin.add_pod(state, pod, hermit, zones.table.find("b"))
    assert open_nodes(zones, plugin, pod, state) == ["a", "c", "bare"]


def test_a_skipped_plugin_ignores_the_anti_affinity_of_nominated_pods(zones, plugin):
    """Upstream does not call a skipped plugin for nominated pods."""
    hermit = zones.incoming("hermit", affinity=apart(term(WEB, HOST)), priority=10)
    zones.nominator.nominate(hermit, "a")
    node = zones.table.find("a")
    framework = zones.framework
    for wanted, expected in ((None, None), (apart(term(DB)), BY_EXISTING)):
        pod = zones.incoming(labels=WEB, affinity=wanted or {})
        state = CycleState()
        for one in framework.pre_filters:
            framework.run_pre_filter(state, pod, one)
        status = framework.run_filters_with_nominated(state, pod, node)
        assert (status.message if status else None) == expected
