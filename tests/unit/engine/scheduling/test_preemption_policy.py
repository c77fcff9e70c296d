"""Plugins may change the victims and the rules of preemption; the rest is as in upstream."""

from __future__ import annotations

import pytest

from fairlead import plugin
from fairlead.engine.scheduling.compose import ProfileError
from fairlead.engine.scheduling.preemption.policy import RULES, policy_of
from fairlead.testing import PluginScene, make_node, make_pod


class Spares:
    """A plugin: pods labelled `precious` can be preempted only from their own namespace."""

    name = "Spares"

    def is_eligible_victim(self, pod, victim):
        return "precious" not in victim.labels or pod.namespace == victim.namespace


class Alphabet:
    """A plugin that rates later letters as more important."""

    name = "Alphabet"

    def importance(self, pod):
        return (ord(pod.pod.metadata.name[0]),)


class Reverse:
    name = "Reverse"

    def importance(self, pod):
        return (-ord(pod.pod.metadata.name[0]),)


class FewestFirst:
    """A plugin with the number of victims as the first rule."""

    name = "FewestFirst"

    def candidate_rules(self, rules):
        fewest = plugin.CandidateRule("fewest of all", lambda c: len(c.victims))
        return [fewest, *rules]


class Last:
    name = "Last"

    def candidate_rules(self, rules):
        return rules[-1:]


def victim(name, node, priority=10, cpu="2", **more):
    return make_pod(name, node=node, priority=priority, requests={"cpu": cpu}, **more)


def urgent(cpu="2", **more):
    return make_pod("urgent", priority=1000, requests={"cpu": cpu}, **more)


def room(pod, *objects, plugins=(), nodes="ab"):
    """Return (node, names of the victims, rule), or None without a candidate."""
    scene = PluginScene(*plugins, nodes=[make_node(name) for name in nodes])
    scene.add(*objects)
    found = scene.make_room(pod)
    if found is None:
        return None
    names = [one.pod.metadata.name for one in found.victims]
    return found.nominated_node, names, found.rule


PRECIOUS = {"labels": {"precious": ""}}


@pytest.mark.parametrize(
    ("namespace", "expected"),
    [
        pytest.param("default", (["x"], "lowest highest victim priority"), id="may be a victim"),
        pytest.param("other", (["y"], "only candidate"), id="is spared"),
    ],
)
def test_eligible_victims_may_depend_on_the_preemptor(namespace, expected) -> None:
    there = (victim("x", "a", 5, "4", **PRECIOUS), victim("y", "b", 9, "4"))
    found = room(urgent(namespace=namespace), *there, plugins=[Spares])
    assert found[1:] == expected


def test_results_are_not_reused_for_preemptors_with_fewer_eligible_victims() -> None:
    scene = PluginScene(Spares, nodes=[make_node("a")])
    scene.add(victim("x", "a", cpu="4", **PRECIOUS))
    assert scene.make_room(urgent()) is not None
    assert scene.make_room(urgent(namespace="other")) is None


def test_a_preemptor_does_not_wait_for_terminating_pods_that_are_not_eligible() -> None:
    leaving = {"conditions": [{"type": "DisruptionTarget", "status": "True",
                               "reason": "PreemptionByScheduler"}]}  # fmt: skip
    there = victim("x", "a", cpu="4", terminating=True, status=leaving, **PRECIOUS)
    waiting = urgent(namespace="other", nominated="a")
    other = victim("y", "b", cpu="4")
    assert room(waiting, there, other) is None
    assert room(waiting, there, other, plugins=[Spares])[0] == "b"


def test_the_first_plugin_that_orders_victims_decides() -> None:
    there = (victim("a", "n"), victim("b", "n", 20))
    assert room(urgent(), *there, nodes="n")[1] == ["a"]
    assert room(urgent(), *there, nodes="n", plugins=[Alphabet, Reverse])[1] == ["a"]
    assert room(urgent(), *there, nodes="n", plugins=[Reverse, Alphabet])[1] == ["b"]


def test_victims_are_listed_from_most_to_least_important() -> None:
    there = [victim(name, "n", cpu="1") for name in "cabd"]
    assert room(urgent("4"), *there, nodes="n", plugins=[Alphabet])[1] == ["d", "c", "b", "a"]


def test_plugin_rules_may_precede_the_rules_of_upstream() -> None:
    there = (victim("one", "a", 50, "4"), victim("two", "b", 5), victim("three", "b", 5))
    assert room(urgent("4"), *there)[0] == "b"
    assert room(urgent("4"), *there, plugins=[FewestFirst]) == ("a", ["one"], "fewest of all")


def test_each_plugin_changes_the_rules_of_the_previous_plugin() -> None:
    names = [rule.name for rule in policy_of([FewestFirst(), Last()]).rules]
    assert names == [RULES[-1].name]


def test_without_such_plugins_the_policy_is_that_of_upstream() -> None:
    policy = policy_of([])
    assert policy.rules == RULES
    assert policy.eligibility == ()


def test_a_plugin_that_fails_to_return_rules_makes_the_profile_invalid() -> None:
    class Broken:
        name = "Broken"

        def candidate_rules(self, rules):
            return rules[0]

    with pytest.raises(ProfileError, match="plugin 'Broken' failed in candidate_rules"):
        PluginScene(Broken)


def test_pods_of_equal_priority_are_never_victims_whatever_a_plugin_returns() -> None:
    class Ruthless:
        name = "Ruthless"

        def is_eligible_victim(self, pod, victim):
            return True

    assert room(urgent(), victim("x", "a", 1000, "4"), nodes="a", plugins=[Ruthless]) is None


def test_a_plugin_notices_a_changed_annotation() -> None:
    class Marked:
        name = "Marked"

        def importance(self, pod):
            return (int(pod.pod.metadata.annotations.get("worth", "0")),)

    scene = PluginScene(Marked, nodes=[make_node("n")])
    scene.add(victim("x", "n"), victim("y", "n"))

    def given_up():
        return [one.pod.metadata.name for one in scene.make_room(urgent()).victims]

    for name, other in (("x", "y"), ("y", "x")):
        worthy, plain = victim(name, "n"), victim(other, "n")
        worthy.metadata.annotations["worth"] = "1"
        scene.add(worthy, plain)
        assert given_up() == [other]
