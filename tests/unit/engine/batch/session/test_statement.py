"""A statement commits all of its operations, or reverts all of them."""

from __future__ import annotations

import pytest

from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.session.statement import ImmediateOperations, Statement
from fairlead.engine.core.command import Bind, DeleteObject
from fairlead.testing.batch_builders import make_gang, make_task
from fairlead.testing.builders import make_node


@pytest.fixture
def busy(harness):
    """A node with a running gang of two, a terminating pod, and a waiting gang."""
    harness.put(make_node("n1"), make_gang("old", 2, node="n1", min_member=0), make_gang("new", 2))
    harness.put(make_task("leaving", node="n1", terminating=True))
    return harness


def test_operations_of_a_statement_take_effect_at_once(busy):
    session = busy.session()
    node = busy.cluster.table.find("n1")
    statement = Statement(session)
    statement.allocate(busy.task("new-0"), node)
    assert busy.task("new-0").status is TaskStatus.ALLOCATED
    assert "uid-new-0" in node.pods
    assert session.room.idle[0, node.row] == 0
    statement.evict(busy.task("old-0"), "preempt")
    statement.pipeline(busy.task("new-1"), node)
    assert session.room.releasing[0, node.row] == 1000
    assert session.commands == []
    job = busy.job("new")
    assert (job.ready_count, job.waiting_count, job.valid_count) == (1, 1, 2)


def test_discard_reverts_all_operations(busy):
    session = busy.session()
    before = busy.dump()
    node = busy.cluster.table.find("n1")
    statement = Statement(session)
    statement.allocate(busy.task("new-0"), node)
    statement.evict(busy.task("old-0"), "preempt")
    statement.evict(busy.task("old-1"), "preempt")
    statement.pipeline(busy.task("new-1"), node)
    statement.discard()
    assert busy.dump() == before
    assert (session.commands, len(statement)) == ([], 0)


def test_discard_after_reverts_the_later_operations(busy):
    session = busy.session()
    statement = Statement(session)
    statement.evict(busy.task("old-0"), "preempt")
    before = busy.dump()
    statement.evict(busy.task("old-1"), "preempt")
    statement.discard_after(1)
    assert (busy.dump(), len(statement)) == (before, 1)


def test_commit_sends_the_commands_in_order(busy):
    session = busy.session()
    node = busy.cluster.table.find("n1")
    statement = Statement(session)
    statement.evict(busy.task("old-1"), "preempt")
    statement.evict(busy.task("old-0"), "preempt")
    statement.pipeline(busy.task("new-0"), node)
    statement.commit()
    deleted = [c.target.name for c in session.commands if isinstance(c, DeleteObject)]
    assert deleted == ["old-1", "old-0"]
    assert len(statement) == 0
    statement.discard()
    assert busy.task("old-0").status is TaskStatus.RELEASING


def test_a_gang_is_bound_after_its_minimum_is_allocated(busy):
    session = busy.session()
    node = busy.cluster.table.find("n1")
    statement = Statement(session)
    statement.allocate(busy.task("new-0"), node)
    statement.commit()
    assert session.commands == []
    statement.allocate(busy.task("new-1"), node)
    statement.commit()
    assert [c.pod.name for c in session.commands if isinstance(c, Bind)] == ["new-0", "new-1"]


def test_undispatched_operations_are_reverted_at_the_end_of_the_session(busy):
    session = busy.session()
    before = busy.dump()
    node = busy.cluster.table.find("n1")
    session.allocate(busy.task("new-0"), node)
    session.pipeline(busy.task("new-1"), node)
    session.revert_undispatched()
    assert busy.dump() == before


def test_immediate_operations_cannot_be_discarded(busy):
    session = busy.session()
    steps = ImmediateOperations(session)
    steps.evict(busy.task("old-0"), "reclaim")
    steps.discard()
    assert busy.task("old-0").status is TaskStatus.RELEASING
    assert [c.target.name for c in session.commands if isinstance(c, DeleteObject)] == ["old-0"]


def test_displacements_are_reported_at_the_commit(busy):
    """The loop detector receives one record for each preemptor, after the commit."""
    session = busy.session()
    reporter = session.reporter = RecordingReporter()
    node, statement = busy.cluster.table.find("n1"), Statement(session)
    victims = [busy.task("old-0"), busy.task("old-1")]
    statement.displace(busy.task("new-0"), node, victims, "preempt")
    statement.discard()
    assert reporter.records == []
    statement.displace(busy.task("new-0"), node, victims, "preempt")
    statement.commit()
    (record,) = reporter.records
    assert (record.pod.name, record.node, record.rule) == ("new-0", "n1", "preempt")
    assert [victim.name for victim in record.victims] == ["old-0", "old-1"]
    assert (record.workload, record.victim_workloads[0]) == (
        "Pod/default/new-0",
        "Pod/default/old-0",
    )


class RecordingReporter:
    def __init__(self):
        self.records = []

    def report(self, record):
        self.records.append(record)
