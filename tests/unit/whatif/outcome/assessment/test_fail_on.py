"""--fail-on: which displaced pods make the exit code 3."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.fail_on import (
    FailOn,
    FailOnFlag,
    check,
    parse_fail_on,
    parse_simulation_fail_on,
)
from fairlead.whatif.outcome.run_outcome import PodEnd
from fairlead.whatif.question import what_if

POD = PodEnd(
    namespace="store",
    name="web-7",
    priority=1000,
    labels={"app": "web", "app.kubernetes.io/name": "shop"},
)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("priority>=1000", True),
        ("priority > 1000", False),
        ("priority<=1000", True),
        ("priority<1000", False),
        ("priority=1000", True),
        ("priority==999", False),
        ("priority!=999", True),
        ("priority>=-5", True),
        ("namespace=store", True),
        ("namespace!=store", False),
        ("name=web-*", True),
        ("name = 'web-?'", True),
        ("name=web", False),
        ("labels.app=web", True),
        ("labels.app.kubernetes.io/name=shop", True),
        ("labels.missing=x", False),
        ("labels.missing!=x", True),
    ],
)
def test_a_condition_matches_pods(text, matches):
    assert parse_fail_on(text).matches(POD) is matches


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not FIELD OPERATOR VALUE"),
        ("priority", "is not FIELD OPERATOR VALUE"),
        ("priority>=high", "priority: 'high' is not an integer"),
        ("priority>=1.5", "priority: '1.5' is not an integer"),
        ("prioriti>=1", "did you mean priority?"),
        ("labels.=x", "unknown field"),
        ("namespace>a", "namespace: > compares numbers"),
        ("name=", "name: a value is missing"),
        ("pendin:priority>=1", "unknown list 'pendin'; did you mean pending?"),
        ("down:priority>=1", "unknown list 'down'"),
        ("pdb-breached>0", "pdb-breached takes no operator and no list"),
        ("evicted:loop=1", "loop takes no operator and no list"),
        ("pending:pending>0", "unknown field 'pending'; known: labels.KEY, name, namespace, pri"),
    ],
)
def test_an_unknown_condition_is_refused(text, problem):
    with pytest.raises(InputError) as refused:
        parse_fail_on(text)
    assert str(refused.value).startswith("--fail-on: ")
    assert problem in str(refused.value)


def test_loop_is_a_condition_on_the_run_and_not_on_pods():
    """`--fail-on loop` matches no pod, whatever it is called."""
    assert isinstance(parse_fail_on("loop"), FailOnFlag)
    assert isinstance(parse_fail_on("name=loop"), FailOn)
    assert parse_simulation_fail_on("loop") is None
    for text in ("pending>0", "pending:priority>=1000"):
        with pytest.raises(InputError, match="needs a what-if"):
            parse_simulation_fail_on(text)


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("pending:priority>=1000", ["default/high"]),
        ("pending:priority>=2000", []),
        ("pending:name=low", ["default/low"]),
        ("priority>=1000", []),
        ("displaced:priority>=1000", []),
    ],
)
def test_a_condition_can_concern_the_pods_of_a_list(snapshot, make, write, text, evidence):
    """The new pods fit on no node; no pod is displaced."""
    classes = (make.priority_class("high", 1000), make.priority_class("low", -5))
    pods = [make.pod(name, cpu="64", priorityClassName=name) for name in ("high", "low")]
    change = ClusterChange(apply=(write("pods.json", *pods),))
    answer = what_if(snapshot(make.node("n"), *classes), change)
    assert check(parse_fail_on(text), answer.effect).evidence == tuple(evidence)
