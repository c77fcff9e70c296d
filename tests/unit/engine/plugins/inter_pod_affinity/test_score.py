"""InterPodAffinity: the scores of nodes by preferred terms."""

from __future__ import annotations

import pytest

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
WEB, DB = {"app": "web"}, {"app": "db"}
NAME = "InterPodAffinity"


@pytest.fixture
def plugin(scene):
    return scene.plugin(NAME)


def term(labels, key=ZONE, **more):
    """A term for pods with `labels`."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **more}


def wish(kind, *weighted):
    """Return preferred (anti-)affinity from (weight, term) pairs; `kind` is the field."""
    terms = [{"weight": weight, "podAffinityTerm": one} for weight, one in weighted]
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def near(*weighted):
    """Preferred affinity."""
    return wish("podAffinity", *weighted)


def apart(*weighted):
    """Preferred anti-affinity."""
    return wish("podAntiAffinity", *weighted)


def must(kind, *terms):
    """Return required (anti-)affinity; `kind` is the field."""
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def fill(scene):
    """Nodes a and b in z1, c in z2, and one that is in no zone."""
    for name, zone in (("a", "z1"), ("b", "z1"), ("c", "z2"), ("bare", None)):
        scene.node(name, zone)
    return scene


@pytest.fixture
def zones(scene):
    return fill(scene)


def test_without_any_match_the_plugin_is_skipped(zones, plugin):
    """A preference without a match does not score."""
    zones.pods("a", 2, labels=DB)
    assert zones.scores(plugin, zones.incoming(affinity=near((5, term(WEB))))) == "skipped"


def test_without_terms_all_nodes_have_equal_scores(zones, plugin):
    """The plugin reports that before it is called."""
    zones.pods("a", 2, labels=WEB)
    pod = zones.incoming(labels=WEB)
    assert plugin.scores_alike(pod)
    assert zones.scores(plugin, pod) == "skipped"


def test_preferences_add_up_per_matching_pod_and_domain(zones, plugin):
    """Affinity adds and anti-affinity subtracts; pods on infeasible nodes count, too."""
    zones.pods("a", 2, labels=WEB)
    zones.pods("c", 1, labels=DB)
    affinity = {**near((5, term(WEB)), (3, term(WEB, HOST))), **apart((4, term(DB)))}
    pod = zones.incoming(affinity=affinity)
    assert zones.raw_scores(plugin, pod) == {"a": 16, "b": 10, "c": -4, "bare": 0}
    assert zones.scores(plugin, pod) == {"a": 100, "b": 70, "c": 0, "bare": 20}
    assert zones.scores(plugin, pod, "b", "bare") == {"b": 100, "bare": 0}


def test_the_same_preference_twice_counts_twice(zones, plugin):
    """This also holds for terms of placed pods."""
    double = near((5, term(WEB)), (5, term(WEB)))
    zones.pods("a", 1, labels=WEB)
    assert zones.raw_scores(plugin, zones.incoming(affinity=double))["b"] == 10
    zones.pod("fan", "c", affinity=double)
    assert zones.raw_scores(plugin, zones.incoming(labels=WEB))["c"] == 10


def test_preferences_of_placed_pods_count_for_matching_pods(zones, plugin):
    """Like the preferences of the incoming pod."""
    zones.pod("fan", "a", affinity=near((5, term(WEB))))
    zones.pod("foe", "c", affinity=apart((2, term(WEB))))
    assert zones.raw_scores(plugin, zones.incoming(labels=WEB)) == {
        "a": 5,
        "b": 5,
        "c": -2,
        "bare": 0,
    }
    assert zones.scores(plugin, zones.incoming(labels=DB)) == "skipped"


def test_required_affinity_of_placed_pods_counts_1_and_anti_affinity_nothing(zones, plugin):
    """hardPodAffinityWeight is 1 by default."""
    zones.pod("friend", "a", affinity=must("podAffinity", term(WEB)))
    zones.pod("hermit", "c", affinity=must("podAntiAffinity", term(WEB)))
    raw = zones.raw_scores(plugin, zones.incoming(labels=WEB))
    assert raw == {"a": 1, "b": 1, "c": 0, "bare": 0}


def test_own_required_affinity_does_not_score(zones, plugin):
    """It is used by Filter only."""
    zones.pods("a", 1, labels=WEB)
    pod = zones.incoming(affinity=must("podAffinity", term(WEB)))
    assert zones.scores(plugin, pod) == "skipped"


@pytest.mark.parametrize(("weight", "expected"), [(7, {"a": 7, "c": 0}), (0, "skipped")])
def test_the_weight_of_required_affinity_is_configurable(new_scene, weight, expected):
    """0 leaves it out altogether."""
    scene = fill(new_scene({NAME: {"hardPodAffinityWeight": weight}}))
    scene.pod("friend", "a", affinity=must("podAffinity", term(WEB)))
    pod = scene.incoming(labels=WEB)
    assert scene.raw_scores(scene.plugin(NAME), pod, "a", "c") == expected


def test_terms_of_placed_pods_may_be_ignored_for_pods_without_preferences(new_scene):
    """ignorePreferredTermsOfExistingPods has no effect for pods with preferences of their own."""
    scene = fill(new_scene({NAME: {"ignorePreferredTermsOfExistingPods": True}}))
    plugin = scene.plugin(NAME)
    scene.pod("fan", "a", labels=DB, affinity=near((5, term(WEB))))
    plain = scene.incoming(labels=WEB)
    assert plugin.scores_alike(plain)
    assert scene.scores(plugin, plain) == "skipped"
    choosy = scene.incoming(labels=WEB, affinity=near((1, term(DB, HOST))))
    assert scene.raw_scores(plugin, choosy) == {"a": 6, "b": 5, "c": 0, "bare": 0}


def test_matches_that_cancel_out_are_matches(zones, plugin):
    """All nodes score 0, but the plugin is not skipped."""
    zones.pods("a", 1, labels=WEB)
    pod = zones.incoming(affinity={**near((5, term(WEB))), **apart((5, term(WEB)))})
    assert zones.scores(plugin, pod) == {"a": 0, "b": 0, "c": 0, "bare": 0}


def test_a_match_on_a_node_without_the_key_does_not_count(zones, plugin):
    """The node is in no domain."""
    zones.pods("bare", 3, labels=WEB)
    assert zones.scores(plugin, zones.incoming(affinity=near((5, term(WEB))))) == "skipped"


def test_the_normalized_score_is_truncated_as_in_upstream(zones, plugin):
    """100 × (29 ÷ 100) is 28.999… as a float, so the score is 28 and not 29."""
    for node, weight in (("a", 100), ("b", 29)):
        zones.pod(f"fan-{node}", node, affinity=near((weight, term(WEB, HOST))))
    pod = zones.incoming(labels=WEB)
    assert zones.scores(plugin, pod, "a", "b", "c") == {"a": 100, "b": 28, "c": 0}


def test_terminating_pods_still_count(zones, plugin):
    """For the incoming pod's terms and for those of placed pods."""
    zones.pod("fan", "a", labels=WEB, affinity=near((5, term(WEB))), leaving=True)
    pod = zones.incoming(labels=WEB, affinity=near((1, term(WEB))))
    assert zones.raw_scores(plugin, pod)["b"] == 6
