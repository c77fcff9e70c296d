"""Failing plugins and actions of users: reported, and the session goes on."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.engine.batch.configuration_file import BatchConfigurationError
from fairlead.engine.batch.explanation.explanation import Obstacle, explain_group
from fairlead.engine.batch.explanation.next_session import with_next_session
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.session.plugin import Unschedulable
from fairlead.engine.framework.interface import Locality
from fairlead.testing import BatchScene, make_gang, make_node

CONFIGURATION = """\
actions: "{actions}"
rules: fairlead
tiers:
- plugins: [{{name: mine}}, {{name: gang}}, {{name: predicates}}, {{name: nodeorder}}]
"""
NUMBERS: Any = (5, 7)
BOUND = ["default/a-0", "default/a-1", "default/b-0"]


def failing(method, answer=None):
    """Return a plugin class whose `method` raises, or returns `answer` if it is given."""

    def broken(self, *arguments):
        return 1 / 0 if answer is None else answer

    parameters = {
        "job_order": lambda self, job: broken(self),
        "task_order": lambda self, task: broken(self),
        "queue_order": lambda self, queue: broken(self),
        "job_valid": lambda self, job: broken(self),
        "job_ready": lambda self, job: broken(self),
        "overused": lambda self, queue: broken(self),
        "allocatable": lambda self, queue, task: broken(self),
        "allocated": lambda self, task: broken(self),
        "on_session_open": lambda self, session: broken(self),
    }
    members = {"name": "mine", method: parameters[method]}
    if method == "allocated":
        members["deallocated"] = parameters[method]
    return type("Mine", (), members)


def scene_with(*plugins, actions="allocate", extra=()):
    objects = [make_node("n", cpu="4"), *make_gang("a", 2), *make_gang("b", 1)]
    configuration = CONFIGURATION.format(actions=actions)
    return BatchScene(configuration, *objects, plugins=plugins, actions=extra)


@pytest.mark.parametrize(
    ("plugin", "bound", "problem"),
    [
        (failing("job_order"), BOUND, "job_order: ZeroDivisionError: division by zero (test_"),
        (failing("task_order"), BOUND, "task_order: ZeroDivisionError"),
        (failing("job_order", {}), BOUND, "job_order: its keys cannot be compared: TypeError"),
        (failing("allocated"), BOUND, "allocated: ZeroDivisionError"),
        (failing("on_session_open"), BOUND, "on_session_open: ZeroDivisionError"),
        (failing("job_valid"), [], "job_valid: ZeroDivisionError"),
        (failing("job_valid", "no"), [], "job_valid: it returned 'no'; expected an Unschedulable"),
        (
            failing("job_valid", Unschedulable(*NUMBERS)),
            [],
            "job_valid: it returned Unschedulable(",
        ),
        (failing("job_ready"), [], "job_ready: ZeroDivisionError"),
        (failing("overused"), [], "overused: ZeroDivisionError"),
        (failing("allocatable", "x"), [], "allocatable: it returned 'x'; expected True or False"),
    ],
)
def test_a_failing_plugin_is_reported_and_allows_nothing(plugin, bound, problem):
    scene = scene_with(plugin)
    assert sorted(scene.run()) == bound
    assert f"plugin 'mine' failed in {problem}" in scene.failures.messages[0]


class BrokenNodes:
    """A scheduler plugin whose methods fail."""

    name = "BrokenNodes"
    locality = Locality.CLUSTER

    def score(self, state, pod, node):
        return node.labels["rack"]


def test_a_failing_score_is_ignored():
    class Mine:
        name = "mine"

        def node_prioritizers(self, handle):
            return [(BrokenNodes(), 1)]

    scene = BatchScene(
        CONFIGURATION.format(actions="allocate"),
        make_node("n"),
        make_node("m"),
        *make_gang("a", 1),
        plugins=[Mine],
    )
    assert list(scene.run()) == ["default/a-0"]
    assert "plugin 'BrokenNodes' failed in score: KeyError: 'rack'" in scene.failures.messages[0]


class Pairs:
    """A scheduler plugin without an extension point."""

    name = "Pairs"


@pytest.mark.parametrize(
    ("method", "answer", "problem"),
    [
        ("predicates", 5, "it returned 5; expected a list of plugins"),
        ("predicates", [object()], "the scheduler plugin object has no name"),
        ("predicates", [BrokenNodes], "expected an instance of the plugin class"),
        ("predicates", [Pairs()], "the scheduler plugin Pairs implements no extension point"),
        ("node_prioritizers", [BrokenNodes()], "expected a pair of a plugin and its weight"),
        ("node_prioritizers", [(BrokenNodes(), "2")], "it returned '2'; expected an integer as"),
    ],
)
def test_an_invalid_scheduler_plugin_is_a_fault_of_the_batch_plugin(method, answer, problem):
    mine = type("Mine", (), {"name": "mine", method: lambda self, handle: answer})
    with pytest.raises(
        BatchConfigurationError, match=f"plugin 'mine' failed in {method}: .*{problem}"
    ):
        scene_with(mine).run()


def test_a_failing_action_takes_back_its_unfinished_evictions():
    class Act:
        name = "act"

        def execute(self, session):
            task = next(iter(session.job_table.tasks.values()))
            session.release(task)
            raise ValueError("no more")

    running = make_gang("a", 1, node="n", status={"phase": "Running"})
    configuration = CONFIGURATION.format(actions="act").replace("{name: mine}, ", "")
    scene = BatchScene(configuration, make_node("n"), *running, actions=[Act()])
    scene.run()
    (task,) = scene._composition.jobs.tasks.values()
    assert task.status is TaskStatus.RUNNING
    assert "plugin 'act' failed in execute: ValueError: no more" in scene.failures.messages[0]


class Fails:
    name = "mine"

    def __init__(self):
        raise ValueError("no licence")

    def job_order(self, job):
        return 0


class Misspelt:
    name = "mine"

    def jobOrder(self, job):  # noqa: N802 - the mistake
        return 0


class Half:
    name = "mine"

    def allocated(self, task):
        pass


class Other:
    name = "other"

    def job_order(self, job):
        return 0


@pytest.mark.parametrize(
    ("plugins", "problem"),
    [
        ([Fails], "plugin 'mine' failed in its constructor: ValueError: no licence"),
        ([Misspelt], "Misspelt has jobOrder, which is never called: it is spelled job_order"),
        ([Half], "Half has allocated, but not deallocated"),
        ([failing("job_order"), failing("job_order")], "mine is given twice"),
        ([failing("job_order"), Other], "other is not named in the configuration"),
    ],
)
def test_a_scene_refuses_a_plugin_that_cannot_be_used(plugins, problem):
    with pytest.raises(BatchConfigurationError, match=problem):
        scene_with(*plugins)


@pytest.mark.parametrize(
    ("method", "summary"), [("job_ready", "job_ready"), ("job_valid", "plugin 'mine' failed in")]
)
def test_an_explanation_names_the_plugin_that_holds_the_group_back(method, summary):
    scene = scene_with(failing(method))
    composition, cluster = scene._composition, scene.cluster
    alone = explain_group(composition, cluster, "default/a", 0)
    found = with_next_session(alone, composition, cluster, 0)
    assert (found.obstacle, found.has_minimum) == (Obstacle.REFUSED, False)
    assert found.summary.startswith(summary)
