"""A user's plugin may raise or return anything: the error names the plugin and has no effects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairlead import plugin as typed
from fairlead.engine.core.command import Bind
from fairlead.engine.framework.diagnosis import Diagnosis
from fairlead.engine.framework.extension_point import METHODS
from fairlead.engine.framework.fault import PluginFault
from fairlead.engine.framework.user_plugin.guard import guarded
from fairlead.testing import PluginScene, make_node, make_pod

framework: Any = typed  # the objects here are wrong on purpose

# Methods that return no status: their default result, and the reporter of the fault.
SILENT = (
    "concerns", "scores_alike", "epoch", "release_commands", "unreserve", "post_bind",
    "is_woken_by", "sort_key",
)  # fmt: skip


class Records(list):
    """A Reporter that stores the records."""

    def report(self, record):
        self.append(record)


@pytest.fixture
def scene():
    return PluginScene(nodes=[make_node("a"), make_node("b")])


@pytest.fixture
def pod(scene):
    return scene.info(make_pod("p", priority=5))


def plugin_with(method, answer):
    """Return a guarded plugin whose one method returns or raises `answer`, and its reports."""

    def ask(self, *arguments):
        if isinstance(answer, BaseException):
            raise answer
        return answer

    records = Records()
    made = type("Made", (), {"name": "Made", method: ask})()
    return guarded(made, records), records


def fault(method, answer, *arguments):
    """Return the text of the fault for this result of `method`."""
    plugin, _ = plugin_with(method, answer)
    with pytest.raises(PluginFault) as found:
        getattr(plugin, method)(*arguments)
    assert found.value.plugin == "Made"
    return str(found.value)


def test_a_plugin_cannot_exit_the_program(pod) -> None:
    """Its exit status would look like a result: 0 if nothing changes."""
    assert "failed in filter: SystemExit: 0 (test_guard.py:" in fault("filter", SystemExit(0), pod)
    assert "failed in filter: GeneratorExit (test_guard.py:" in fault(
        "filter", GeneratorExit(), pod
    )


def test_the_user_can_interrupt_a_plugin(pod) -> None:
    plugin, _ = plugin_with("filter", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        plugin.filter(pod)


RAISING = [m.name for m in METHODS if m.name not in SILENT]


@pytest.mark.parametrize("method", RAISING)
def test_a_fault_names_plugin_method_exception_and_line(method, pod) -> None:
    text = fault(method, ZeroDivisionError("by zero"), pod, 1)
    assert text.startswith(f"plugin 'Made' failed in {method}: ZeroDivisionError: by zero (")
    assert text.endswith(")")
    assert "test_guard.py:" in text


class WordlessError(Exception):
    def __str__(self):
        raise RuntimeError


def test_an_exception_that_cannot_be_formatted_is_reported(pod) -> None:
    assert "WordlessError: (no text)" in fault("filter", WordlessError(), None, pod, None)


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("concerns", True), ("scores_alike", False), ("epoch", None), ("is_woken_by", True),
        ("release_commands", ()), ("unreserve", None), ("post_bind", None), ("sort_key", (-5, 7)),
    ],
)  # fmt: skip
def test_methods_without_a_status_return_a_safe_default(method, answer, pod) -> None:
    plugin, records = plugin_with(method, ValueError("no"))
    assert getattr(plugin, method)(pod, 7) == answer
    [record] = records
    assert record.plugin == "Made"
    assert record.message.startswith(f"plugin 'Made' failed in {method}: ValueError: no")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [(None, "not iterable"), ([1], "it returned 1; expected a command that creates, deletes")],
)
def test_invalid_commands_are_reported_and_not_executed(answer, problem, pod) -> None:
    plugin, records = plugin_with("release_commands", answer)
    assert plugin.release_commands(None, pod, "a") == ()
    assert problem in records[0].message


REF = framework.ObjectRef("Pod", "default", "web")
PATCH = framework.PatchObject(REF, {})
BIND = framework.Bind(REF, "a")


def prepared(command, **fields):
    return framework.Preparation((command,), **fields)


REFUSED = [
    ("pre_enqueue", True, "it returned True; expected a Status or None"),
    ("pre_enqueue", framework.SKIP, "it returned the code Skip, which is not allowed here"),
    ("pre_filter", False, "it returned False; expected a PreFilterResult, a Status or None"),
    ("pre_filter", framework.PreFilterResult(["a"]), "PreFilterResult.node_names must be a tuple"),
    ("pre_filter", framework.PreFilterResult((1,)), "PreFilterResult.node_names must be a tuple"),
    ("filter", "no room", "it returned 'no room'; expected a Status or None"),
    ("filter", framework.SKIP, "the code Skip, which is not allowed here"),
    ("filter", framework.Status(framework.Code.ERROR, "text"), "a tuple of strings, not 'text'"),
    ("filter", framework.Status(framework.Code.ERROR, ([],)), "a tuple of strings, not ([],)"),
    ("pre_score", 1, "it returned 1; expected a Status or None"),
    ("score", None, "it returned None; expected an integer"),
    ("score", 0.5, "it returned 0.5; expected an integer"),
    ("score", 1 << 60, "is not from -2^53 to 2^53"),
    ("reserve", 0, "it returned 0; expected a Status or None"),
    ("permit", 30, "it returned 30; expected a Status, a Wait or None"),
    ("permit", framework.Wait(-1), "Wait.timeout is -1, not a number of nanoseconds"),
    ("permit", framework.Wait(1.5), "Wait.timeout is 1.5, not a number of nanoseconds"),
    ("permit", framework.Wait(30), "Wait.timeout is 30 ns, less than 1 ms; plugin.seconds makes"),
    ("permit", framework.Status(framework.Code.WAIT), "the code Wait, which is not allowed here"),
    ("pre_bind", "x" * 99, "expected a Status, a Preparation or None"),
    ("pre_bind", prepared(BIND), "it returned Bind("),
    ("pre_bind", framework.Preparation(PATCH), "Preparation.commands must be a tuple of commands"),
    ("pre_bind", prepared(framework.PatchObject("web", {})), "PatchObject.target must be an Obj"),
    ("pre_bind", prepared(framework.PatchObject(REF, "x")), "PatchObject.patch must be a mapping"),
    ("pre_bind", prepared(framework.CreateObject("x")), "CreateObject.manifest must be a mapping"),
    (
        "pre_bind",
        prepared(framework.CreateObject({"metadata": None})),
        "the metadata in CreateObject.manifest must be a mapping",
    ),
    (
        "pre_bind",
        prepared(framework.PatchStatus(REF, conditions=({"type": "Ready"},))),
        "expected a Condition among the conditions",
    ),
    (
        "pre_bind",
        prepared(framework.DeleteObject(REF, grace_period_s="5")),
        "DeleteObject.grace_period_s must be an integer or None",
    ),
    ("pre_bind", prepared(PATCH, on_timeout=None), "Preparation.on_timeout must be a string"),
    ("pre_bind", prepared(PATCH, interval="1s"), "Preparation.interval is '1s', not a number of"),
    ("pre_bind", prepared(PATCH, interval=-5), "Preparation.interval is -5, not a number of"),
    ("pre_bind", prepared(PATCH, interval=0), "Preparation.interval is 0"),
    ("pre_bind", prepared(PATCH, timeout=600), "Preparation.timeout is 600 ns, less than 1 ms"),
    ("is_prepared", framework.SKIP, "the code Skip, which is not allowed here"),
    ("importance", 7, "it returned 7; expected a tuple of integers"),
    ("importance", (1.5,), "it returned (1.5,); expected a tuple of integers"),
    ("candidate_rules", None, "not iterable"),
    ("candidate_rules", ["cheap"], "it returned 'cheap'; expected a CandidateRule"),
    ("normalize_scores", [1], "scores are list, not an array of integers"),
    ("normalize_scores", np.array([0.5]), "scores are float64, not an array of integers"),
    ("normalize_scores", np.array([1, 2]), "scores have the shape (2,), not (1,)"),
    ("score_columns", np.array([1 << 60]), "a score is not from -2^53 to 2^53"),
    ("filter_columns", np.zeros(1), "expected Verdicts"),
    ("filter_columns", framework.Verdicts([0], ()), "Verdicts.codes are list"),
    ("filter_columns", framework.Verdicts(np.array([1]), ()), "Verdicts.codes go from 1 to 1"),
    ("filter_columns", framework.Verdicts(np.array([-1]), (None,)), "Verdicts.codes go from -1"),
    ("filter_columns", framework.Verdicts(np.array([1]), (None, "no")), "expected a Status"),
    (
        "filter_columns",
        framework.Verdicts(np.array([1]), (None, framework.SKIP)),
        "Verdicts.statuses has the code Skip, which does not reject a node",
    ),
]


@pytest.mark.parametrize(("method", "answer", "problem"), REFUSED)
def test_invalid_results_are_faults(method, answer, problem) -> None:
    assert problem in fault(method, answer, None, None, np.array([0]))


ACCEPTED = [
    ("filter", None),
    ("filter", framework.unschedulable("no")),
    ("filter", framework.error("no")),
    ("pre_filter", framework.SKIP),
    ("pre_filter", framework.PreFilterResult(("a", "b"))),
    ("permit", framework.Wait(0)),
    ("is_prepared", framework.Status(framework.Code.WAIT)),
    ("score", -7),
    ("sort_key", (1, 2)),
    ("importance", ()),
]


@pytest.mark.parametrize(("method", "answer"), ACCEPTED)
def test_valid_results_are_returned_unchanged(method, answer) -> None:
    plugin, records = plugin_with(method, answer)
    assert getattr(plugin, method)(None, None, None) is answer
    assert records == []


def test_numpy_integers_are_accepted() -> None:
    plugin, _ = plugin_with("score", np.int32(7))
    assert type(plugin.score(None, None, None)) is int
    plugin, _ = plugin_with("score_columns", np.array([7], np.uint8))
    assert plugin.score_columns(None, None, None, [0]).dtype == np.int64


def test_a_bind_must_have_the_chosen_pod_and_node(pod) -> None:
    other = Bind(pod.ref, "elsewhere")
    assert "it binds default/p to elsewhere, not default/p to a" in fault("bind", other, pod, "a")
    assert "it returned 'a'; expected a Bind or None" in fault("bind", "a", pod, "a")
    plugin, _ = plugin_with("bind", Bind(pod.ref, "a"))
    assert plugin.bind(pod, "a") == Bind(pod.ref, "a")


def rooms(scene, *, node="a", victims=(), **more):
    """Return a PostFilterResult with a nominated node and victims."""
    infos = tuple(scene.info(victim) for victim in victims)
    return framework.PostFilterResult(framework.SUCCESS, node, infos, **more)


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (lambda scene: None, "expected a PostFilterResult"),
        (lambda scene: rooms(scene, node="x"), "it nominates the node 'x', which does not exist"),
        (
            lambda scene: rooms(scene, victims=[make_pod("v", priority=5)]),
            "the priority of the victim default/v is not below the preemptor's",
        ),
        (
            lambda scene: framework.PostFilterResult(framework.SUCCESS, "a", ("v",)),
            "a PodInfo among the victims",
        ),
        (lambda scene: rooms(scene, commands=("x",)), "a PatchStatus among the commands"),
        (lambda scene: rooms(scene, shortlist=object()), "it has a shortlist"),
    ],
)
def test_invalid_post_filter_results_are_faults(scene, pod, result, problem) -> None:
    nowhere = Diagnosis(scene.cluster.table, np.zeros(0, int), np.zeros(0, int), ())
    assert problem in fault("post_filter", result(scene), None, pod, nowhere)


def test_the_cost_of_each_candidate_rule_is_checked() -> None:
    def broken(candidate):
        return 1 / 0

    rules = [framework.CandidateRule("none", lambda c: None), framework.CandidateRule("x", broken)]
    plugin, _ = plugin_with("candidate_rules", rules)
    none, raising = plugin.candidate_rules(())
    with pytest.raises(PluginFault, match="the cost of rule 'none': None is not an integer"):
        none.cost(None)
    with pytest.raises(PluginFault, match="the cost of rule 'x': ZeroDivisionError"):
        raising.cost(None)
