"""Explanations of PriorityClasses."""

from __future__ import annotations

import json

import pytest

from fairlead.cli.main import run
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.release import NO_CHOICE, ReleaseChoice, read_release
from fairlead.whatif.explain.target import explain_object
from fairlead.whatif.input.error import InputError

SYSTEM = ["system-node-critical", "system-cluster-critical"]
BUDGETS = (
    "3 pods of lower priority have a disruption budget, so preemption avoids them if it can; for 1 "
    "of them, a budget allows no disruption now."
)
READY = [{"type": "Ready", "status": "True"}]


def bound(make, name, priority, class_name="", *, node="a", owner="", **spec):
    named = {"priorityClassName": class_name} if class_name else {}
    pod = make.pod(name, node_name=node, owner=owner, priority=priority, **named, **spec)
    pod["metadata"]["labels"] = {"app": owner or name}
    pod["status"] |= {"conditions": READY} if node else {}
    return pod


def budget(app, minimum):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": {"app": app}}},
    }


@pytest.fixture
def explained(snapshot):
    def explain(target, *objects, version=None):
        choice = ReleaseChoice(version) if version else NO_CHOICE
        config = SchedulerConfig(version=read_release(choice).scheduler)
        return explain_object(snapshot(*objects), target, config, choice)

    return explain


@pytest.fixture
def cluster(make):
    """Three classes; `low` has pods with and without budgets, one of which allows nothing."""
    return [
        make.node("a", cpu="20"),
        make.priority_class("low", 10, preemptionPolicy="Never"),
        make.priority_class("middle", 100, globalDefault=True),
        make.priority_class("high", 1000),
        *(bound(make, f"batch-{n}", 10, "low", owner="batch", preemptionPolicy="Never")
          for n in range(2)),
        bound(make, "one", 10, "low", preemptionPolicy="Never"),
        bound(make, "free", 0),
        bound(make, "web", 100, "middle", owner="web"),
        bound(make, "waits", 100, "middle", node="", owner="web"),
        budget("batch", 1),
        budget("one", 1),
    ]  # fmt: skip


def rows(answer, name):
    return [dict(row) for table in answer.tables if table.name == name for row in table.rows]


def test_a_class_names_its_pods_and_victims_and_who_may_preempt_its_pods(explained, cluster):
    answer = explained("pc/middle", *cluster)
    assert answer.verdict == (
        "Pods of pc/middle (100) may preempt 4 pods of lower priority. Pods of high and of the "
        "system classes may preempt 1 of its 2 pods."
    )
    assert answer.findings == (
        "It is the global default: new pods that name no class get it.",
        "2 pods use it, with requests of 2 cpu; 1 of them is pending.",
        BUDGETS,
    )
    assert rows(answer, "workloads") == [
        {"workload": "rs/default/web", "pods": 2, "pending": 1, "requests": "2 cpu",
         "requested": {"cpu": 2000}}
    ]  # fmt: skip
    assert rows(answer, "may_preempt") == [
        {"priority_class": "no class", "value": 0, "pods": 1, "with_budget": 0,
         "against_budget": 0, "requests": "1 cpu", "requested": {"cpu": 1000}},
        {"priority_class": "low", "value": 10, "pods": 3, "with_budget": 3,
         "against_budget": 1, "requests": "3 cpu", "requested": {"cpu": 3000}},
    ]  # fmt: skip
    found = [(row["priority_class"], row["may_preempt"]) for row in rows(answer, "preemptors")]
    assert found == [*((name, 1) for name in SYSTEM), ("high", 1)]
    assert answer.facts["victims_against_budget"] == 1


def test_a_class_with_the_policy_never_preempts_no_pods(explained, cluster):
    answer = explained("priorityclass/low", *cluster)
    assert answer.verdict == (
        "Pods of pc/low (10) preempt no pods, because its preemptionPolicy is Never. Pods of "
        "middle, high and of the system classes may preempt its 3 pods."
    )
    workloads = [(row["workload"], row["pods"]) for row in rows(answer, "workloads")]
    assert workloads == [("rs/default/batch", 2), ("pod/default/one", 1)]


def test_old_schedulers_ignore_the_policy_never(explained, cluster):
    """Kubernetes 1.16 has the gate NonPreemptingPriority, which is off."""
    answer = explained("pc/low", *cluster, version="1.16")
    assert answer.verdict.startswith("Pods of pc/low (10) may preempt 1 pod of lower priority.")


def test_higher_classes_with_the_policy_never_are_counted(explained, cluster, make):
    never = make.priority_class("never", 50, preemptionPolicy="Never")
    answer = explained("pc/low", *cluster, never)
    assert "5 classes have a higher value; 1 of them with the preemptionPolicy Never." in (
        answer.findings
    )
    assert rows(answer, "preemptors")[-1]["may_preempt"] == 0
    assert "never" not in answer.verdict


MISTAKES = {
    "pc/unused": "No pod and no workload uses it.",
    "pc/named": "No pod uses it now, but Deployment default/idle names it.",
    "pc/twin": "unused has the same value: pods with this priority cannot preempt one another.",
    "pc/third": "first, second have the same value: pods with this priority cannot preempt one "
    "another.",
    "pc/changed": "1 of its pods has priority 7 instead of 500: existing pods keep the priority "
    "that their class had when they were created.",
    "pc/stronger": "1 of its pods has the preemptionPolicy PreemptLowerPriority instead of Never.",
    "pc/gone": "The dump has no PriorityClass gone: the API server refuses new pods that name it. "
    "42 is the priority of its newest pod.",
    "pc/lonely": "Deployment default/lost names PriorityClass nowhere, which does not exist: the "
    "API server refuses its new pods.",
}


@pytest.mark.parametrize(("target", "problem"), MISTAKES.items())
def test_probable_mistakes_are_problems(explained, make, target, problem):
    objects = [
        make.node("a", cpu="20"),
        make.priority_class("unused", 200),
        make.priority_class("twin", 200),
        make.priority_class("named", 300),
        *(make.priority_class(name, 400) for name in ("first", "second", "third")),
        make.priority_class("changed", 500),
        make.priority_class("stronger", 600, preemptionPolicy="Never"),
        make.priority_class("lonely", 700),
        bound(make, "t", 200, "twin"),
        bound(make, "old", 7, "changed"),
        bound(make, "s", 600, "stronger"),
        bound(make, "left", 42, "gone"),
        make.workload(name="idle", replicas=0, priorityClassName="named"),
        make.workload(name="lost", replicas=0, priorityClassName="nowhere"),
    ]
    assert problem in explained(target, *objects).facts["problems"]
    name = target.removeprefix("pc/")
    every = explained("pc", *objects).facts["problems"]
    assert problem in every or f"{name}: {problem}" in every


def test_pods_with_another_priority_than_their_class_are_preempted_by_their_own(explained, make):
    """Both classes were created again: `old` had priority 7, and `low` is lower than before."""
    objects = [
        make.node("a"),
        make.priority_class("changed", 500),
        make.priority_class("low", 100),
        bound(make, "old", 7, "changed"),
    ]
    answer = explained("pc/changed", *objects)
    assert "Pods of low and of the system classes may preempt its 1 pod." in answer.verdict


def test_a_dump_without_classes_has_the_classes_of_its_pods(explained, make):
    objects = [make.node("a"), bound(make, "p", 5, "x"), bound(make, "q", 3)]
    answer = explained("pc/x", *objects)
    assert answer.findings[0] == (
        "The dump has no PriorityClasses; 5 is the priority of its newest pod."
    )
    found = [row["priority_class"] for row in rows(explained("pc", *objects), "classes")]
    assert found == [*SYSTEM, "x", "no class"]


@pytest.mark.parametrize(
    ("name", "priority"), [("system-own", 5), ("huge", 2_000_000_000), ("old", -7)]
)
def test_a_class_that_the_dump_lacks_has_the_priority_of_its_newest_pod(
    explained, cluster, make, name, priority
):
    """No PriorityClass with the first name, or with the second value, can be created."""
    objects = [*cluster, bound(make, "p", priority, name)]
    found = {
        row["priority_class"]: row["value"] for row in rows(explained("pc", *objects), "classes")
    }
    assert found[name] == priority
    victims = rows(explained("pc/system-node-critical", *objects), "may_preempt")
    assert [row["pods"] for row in victims if row["priority_class"] == name] == [1]


def test_all_classes_are_listed_highest_first(explained, cluster):
    answer = explained("priorityclasses", *cluster)
    assert answer.verdict == (
        "Of 5 PriorityClasses, 4 may preempt pods now; 5 pods may be preempted."
    )
    assert answer.findings == ("high: No pod and no workload uses it.",)
    found = [
        (row["priority_class"], row["pods"], row["may_preempt"], row["may_be_preempted"])
        for row in rows(answer, "classes")
    ]
    assert found == [
        *((name, 0, 5, 0) for name in SYSTEM),
        ("high", 0, 5, 0),
        ("middle", 2, 4, 1),
        ("low", 3, 0, 3),
        ("no class", 1, 0, 1),
    ]


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("pc/hihg", "there is no PriorityClass hihg; did you mean high?"),
        ("pc/store/high", "a PriorityClass is in no namespace; write pc/high"),
        ("pc/", "'pc/' is not KIND/NAME"),
        ("pc/no class", "there is no PriorityClass no class"),
    ],
)
def test_a_class_that_does_not_exist_is_refused(explained, cluster, target, problem):
    with pytest.raises(InputError, match=problem):
        explained(target, *cluster)


def test_a_class_is_printed_in_every_format(write, cluster, capsys):
    path = write("dump.json", *cluster)
    assert run(["explain", path, "pc/high", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "PriorityClassExplanation"
    assert run(["explain", path, "pc", "-o", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("### Of 5 PriorityClasses")
    assert run(["explain", path, "pc", "--seeds", "3"]) == 2
