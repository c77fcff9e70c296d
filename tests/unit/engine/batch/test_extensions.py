"""Plugins and actions that users add in Python, by name."""

from __future__ import annotations

import pytest

from fairlead.engine.batch.configuration_file import BatchConfigurationError
from fairlead.engine.batch.extension import Extensions
from fairlead.engine.batch.session.plugin import Unschedulable
from fairlead.engine.core.status import unschedulable
from fairlead.engine.framework.interface import Locality
from fairlead.testing.batch_builders import make_gang, make_queue, make_task
from fairlead.testing.builders import make_node

CONFIGURATION = """\
actions: "{actions}"
rules: fairlead
tiers:
- plugins:
  - name: mine
    arguments: {{mark: zebra}}
  - name: gang
  - name: predicates
  - name: nodeorder
"""


class LastFirst:
    """A plugin that orders jobs by name backwards, and excludes the marked node from jobs."""

    name = "mine"

    def __init__(self, context):
        self.mark = context.arguments["mark"]
        self.calls = []

    def on_session_open(self, session):
        self.calls.append("open")

    def job_order(self, job):
        return tuple(-ord(letter) for letter in job.id)

    def job_valid(self, job):
        refused = job.id.endswith("refused")
        return Unschedulable("Mine", "by my leave") if refused else None

    def allocated(self, task):
        self.calls.append(task.key)

    def deallocated(self, task):
        self.calls.append(f"-{task.key}")

    def predicates(self, handle):
        return [NotOn(self.mark)]


class NotOn:
    """A filter that excludes one node."""

    name = "NotOn"
    locality = Locality.NODE

    def __init__(self, mark):
        self.mark = mark

    def filter(self, state, pod, node):
        return unschedulable("not mine") if node.name == self.mark else None


class Sweep:
    """An action that evicts all running tasks."""

    name = "sweep"

    def execute(self, session):
        for task in list(session.job_table.tasks.values()):
            if task.status.name == "RUNNING":
                session.release(task)
                session.evict(task, "sweep")


@pytest.fixture
def made():
    return []


@pytest.fixture
def extensions(made):
    def build(context):
        made.append(LastFirst(context))
        return made[-1]

    return Extensions(plugins={"mine": build}, actions={"sweep": Sweep()})


def test_a_plugin_is_called_at_each_extension_point_that_it_implements(
    make_harness, extensions, made
):
    harness = make_harness(CONFIGURATION.format(actions="allocate"), extensions=extensions)
    harness.put(make_node("zebra"), make_node("n1", cpu="1"))
    found = harness.put(make_gang("a", 1), make_gang("b", 1), make_gang("refused", 1)).run()
    assert found.bound == {"b-0": "n1"}
    (condition,) = found.patches["PodGroup", "refused"].conditions
    assert (condition.reason, condition.message) == ("Mine", "by my leave")
    assert made[0].calls == ["open", "default/b-0"]


def test_a_plugin_is_notified_of_reverted_allocations(make_harness, extensions, made):
    harness = make_harness(CONFIGURATION.format(actions="allocate"), extensions=extensions)
    harness.put(make_node("n1", cpu="1"), make_gang("a", 2)).run()
    assert made[0].calls == ["open", "default/a-0", "-default/a-0"]


def test_a_user_action_runs_in_its_configured_position(make_harness, extensions):
    harness = make_harness(CONFIGURATION.format(actions="sweep, allocate"), extensions=extensions)
    harness.put(make_queue("default"), make_node("n1"), make_task("p", node="n1"))
    assert harness.run().evicted == {"p": "sweep"}


def test_user_plugins_and_actions_are_found_by_name(make_harness):
    with pytest.raises(
        BatchConfigurationError, match=r"tiers\[0\]\.plugins: no plugin 'mine'; known: "
    ):
        make_harness(CONFIGURATION.format(actions="allocate"))
    with pytest.raises(
        BatchConfigurationError, match=r"actions: no action 'sweep'; known: allocate"
    ):
        make_harness(CONFIGURATION.format(actions="sweep"))
