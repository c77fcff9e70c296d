"""A task whose volumes or devices cannot be prepared is not bound, nor is its gang."""

from __future__ import annotations

import pytest

from fairlead.engine.batch.extension import Extensions
from fairlead.engine.core.status import SUCCESS, unschedulable
from fairlead.engine.framework.interface import Locality
from fairlead.testing.batch_builders import make_gang, make_queue
from fairlead.testing.builders import make_node
from fairlead.testing.storage_builders import (
    make_claim,
    make_claim_volumes,
    make_storage_class,
    make_volume,
)

CONFIGURATION = """\
actions: "allocate"
rules: fairlead
tiers:
- plugins:
  - name: mine
  - name: gang
  - name: predicates
  - name: nodeorder
"""


class Answers:
    """A framework plugin with given results of Reserve and PreBind; it records Unreserve."""

    name = "Answers"
    locality = Locality.NODE

    def __init__(self, answers):
        self.answers = answers
        self.undone = []

    def filter(self, state, pod, node):
        return None

    def reserve(self, state, pod, node):
        return self.answers.get("reserve")

    def unreserve(self, state, pod, node):
        self.undone.append(pod.pod.metadata.name)

    def pre_bind(self, state, pod, node):
        return self.answers.get("pre_bind")


class Mine:
    """A batch plugin that adds a framework plugin."""

    name = "mine"

    def __init__(self, plugin):
        self.plugin = plugin

    def predicates(self, handle):
        return [self.plugin]


@pytest.fixture
def served(make_harness):
    """Returns (plugin, decisions of a session) for a gang of two with a bound volume."""

    def run(**answers):
        plugin = Answers(answers)
        mine = Extensions(plugins={"mine": lambda _context: Mine(plugin)})
        harness = make_harness(CONFIGURATION, extensions=mine).put(
            make_queue("default"), make_node("n1")
        )
        harness.put(
            make_storage_class(), make_volume("v", claim="default/c", modes=["ReadWriteMany"])
        )
        harness.put(make_claim("c", volume="v", bound=True, modes=["ReadWriteMany"]))
        return harness, plugin, harness.put(make_gang("g", 2, spec=make_claim_volumes("c"))).run()

    return run


@pytest.mark.parametrize("point", ["reserve", "pre_bind"])
def test_a_failed_preparation_reverts_the_whole_gang(served, point):
    """The resources are idle again, and the status of the group has the reason."""
    harness, plugin, found = served(**{point: unschedulable("not today")})
    assert found.bound == {}
    assert harness.cluster.table.find("n1").pods == {}
    assert sorted(plugin.undone) == ["g-0", "g-1"]
    (condition,) = found.patches["PodGroup", "g"].conditions
    assert "not today" in condition.message


@pytest.mark.parametrize("answer", [None, SUCCESS])
def test_the_gang_is_bound_after_successful_preparations(served, answer):
    _, plugin, found = served(reserve=answer, pre_bind=answer)
    assert found.bound == {"g-0": "n1", "g-1": "n1"}
    assert plugin.undone == []
