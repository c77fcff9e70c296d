"""Fork: all hypothetical changes are reverted exactly."""

from __future__ import annotations

import pytest

from fairlead.engine.state.fork import fork
from fairlead.testing.builders import make_node, make_pod

GPU = "nvidia.com/gpu"


@pytest.fixture
def full(believer):
    believer.put(make_node("n1"), make_node("n2"))
    believer.put(make_pod("a", node="n1", requests={"cpu": "1"}, host_ports=[80]))
    believer.put(make_pod("b", node="n1", requests={"memory": "1Gi"}, labels={"app": "b"}))
    return believer


def test_hypothetical_changes_are_visible_in_integers_and_columns(full):
    """Readers of rows and readers of columns see the same changes."""
    node, pod = full.node("n2"), full.info(make_pod("c", requests={"cpu": "2"}, host_ports=[80]))
    with fork(full.table) as hypothesis:
        hypothesis.add_pod(node, pod)
        hypothesis.remove_pod(full.node("n1"), full.known("default/a"))
        assert (full.on("n1"), full.on("n2")) == (["default/b"], ["default/c"])
        assert full.table.requested[0, [full.node("n1").row, node.row]].tolist() == [0, 2000]
        assert full.table.pod_count[[full.node("n1").row, node.row]].tolist() == [1, 1]
        assert (list(full.node("n1").used_ports), len(node.used_ports)) == ([], 1)


def test_leaving_a_fork_reverts_its_changes(full, dump):
    """The change logs have no entry of the fork."""
    before, log = dump(full.table), full.table.pod_log.position
    with fork(full.table) as hypothesis:
        hypothesis.remove_pod(full.node("n1"), full.known("default/b"))
        hypothesis.add_pod(full.node("n1"), full.info(make_pod("c", requests={"cpu": "2"})))
        hypothesis.add_pod(full.node("n2"), full.known("default/b"))
        assert dump(full.table) != before
    assert dump(full.table) == before
    assert full.table.pod_log.position == log


def break_down_within_a_hypothesis(full):
    with fork(full.table) as hypothesis:
        hypothesis.remove_pod(full.node("n1"), full.known("default/b"))
        raise ZeroDivisionError


def test_an_exception_reverts_the_changes_of_a_fork(full, dump):
    """A plugin that fails within a fork does not change the columns."""
    before = dump(full.table)
    with pytest.raises(ZeroDivisionError):
        break_down_within_a_hypothesis(full)
    assert dump(full.table) == before


def test_a_host_port_of_two_pods_is_in_use_after_the_fork(full, dump):
    """The removal of a hypothetical preemptor must not free the port of its victim."""
    before = dump(full.table)
    with fork(full.table) as hypothesis:
        hypothesis.add_pod(full.node("n1"), full.info(make_pod("c", host_ports=[80])))
    assert dump(full.table) == before


def test_a_host_port_of_two_pods_is_free_after_the_removal_of_one(full, dump):
    """Upstream's used ports are a set, also in a dry run; the fork restores the port."""
    full.put(make_pod("c", node="n1", host_ports=[80, 81]))
    before = dump(full.table)
    with fork(full.table) as hypothesis:
        hypothesis.remove_pod(full.node("n1"), full.known("default/c"))
        assert list(full.node("n1").used_ports) == []
        hypothesis.remove_pod(full.node("n1"), full.known("default/a"))
        hypothesis.add_pod(full.node("n1"), full.known("default/c"))
        assert len(full.node("n1").used_ports) == 2
    assert dump(full.table) == before


def test_forks_may_be_nested(full, dump):
    """The inner fork ends first, and the changes of the outer one are kept."""
    before, node = dump(full.table), full.node("n2")
    with fork(full.table) as outer:
        other = full.info(make_pod("c", requests={"cpu": "2"}, host_ports=[90]))
        outer.add_pod(node, other)
        supposed = dump(full.table)
        with fork(full.table) as inner:
            inner.add_pod(node, full.info(make_pod("d", host_ports=[90])))
            inner.remove_pod(node, other)
        assert dump(full.table) == supposed
    assert dump(full.table) == before


def test_a_fork_may_add_a_resource_column(full, check):
    """The table has a new column, which is empty after the fork."""
    pod = full.info(make_pod("c", requests={GPU: 3}))
    with fork(full.table) as hypothesis:
        hypothesis.add_pod(full.node("n1"), pod)
        column = full.table.resources.column(GPU)
        assert full.table.requested[column, full.node("n1").row] == 3
    assert not full.table.requested[column].any()
    check(full.table)


def test_committed_changes_are_kept_and_logged(full):
    """Only later changes are reverted."""
    log = full.table.pod_log.position
    with fork(full.table) as hypothesis:
        hypothesis.remove_pod(full.node("n1"), full.known("default/a"))
        hypothesis.commit()
        hypothesis.remove_pod(full.node("n1"), full.known("default/b"))
    assert full.on("n1") == ["default/b"]
    assert full.table.pod_log.since(log) == [full.node("n1").row]
