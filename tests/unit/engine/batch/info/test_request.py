"""What a task occupies and what it needs to start, by two rules."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.engine.batch.info.request import (
    KUBE_BATCH_SLACK,
    NO_SLACK,
    RequestTable,
    Slack,
    container_requests,
    effective_requests,
)
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import CPU, MEMORY, ResourceColumns
from fairlead.engine.state.shape import ShapeTable
from fairlead.testing.batch_builders import make_task

MIB = 1024 * 1024


@pytest.fixture
def request_of():
    """The request of a pod by a rule."""
    columns = ResourceColumns()
    shapes = ShapeTable(columns)

    def find(pod, rule=container_requests, slack=KUBE_BATCH_SLACK):
        return RequestTable(rule, slack, columns).of(PodInfo(pod, shapes.shape_of(pod)))

    return find


def pod(containers, init=(), **spec):
    def container(requests):
        return {"name": "c", "resources": {"requests": requests}}

    body = {
        "containers": [container(r) for r in containers],
        "initContainers": [container(r) for r in init],
        **spec,
    }
    return decode_as(Pod, {"metadata": {"name": "p", "namespace": "ns"}, "spec": body})


def test_kube_batch_adds_up_containers(request_of):
    found = request_of(pod([{"cpu": "1", "memory": "1Mi"}, {"cpu": "500m"}]))
    assert dict(found.running) == {CPU: 1500, MEMORY: MIB}
    assert found.running == found.starting


def test_kube_batch_looks_at_init_containers_only_when_starting(request_of):
    found = request_of(pod([{"cpu": "1"}], [{"cpu": "3"}, {"cpu": "2"}]))
    assert (dict(found.running), dict(found.starting)) == ({CPU: 1000}, {CPU: 3000, MEMORY: 0})


def test_kube_batch_knows_no_overhead_and_kubernetes_does(request_of):
    heavy = pod([{"cpu": "1"}], [{"cpu": "3"}], overhead={"cpu": "250m"})
    assert dict(request_of(heavy).running) == {CPU: 1000}
    found = request_of(heavy, effective_requests, NO_SLACK)
    assert dict(found.running) == dict(found.starting) == {CPU: 3250}


def test_kube_batch_does_not_count_ephemeral_storage(request_of):
    found = request_of(pod([{"cpu": "1", "ephemeral-storage": "1Gi"}]))
    assert dict(found.running) == {CPU: 1000}


def test_what_nodes_count_beyond_the_rule_is_known(request_of):
    found = request_of(pod([{"cpu": "1", "memory": "1Mi"}], [{"cpu": "3"}]))
    assert dict(found.surplus) == {CPU: 2000}
    assert found.is_odd
    assert not request_of(make_task("plain")).is_odd


def test_priorities_count_containers_with_defaults(request_of):
    found = request_of(pod([{"cpu": "1"}, {}], [{"cpu": "3"}]))
    assert found.nonzero == (1100, 400 * MIB)


@pytest.mark.parametrize(
    ("requests", "nothing"),
    [
        ({}, True),
        ({"cpu": "9m", "memory": "9Mi"}, True),
        ({"cpu": "10m"}, False),
        ({"memory": "10Mi"}, False),
        ({"nvidia.com/gpu": "1"}, False),
    ],
)
def test_requests_below_the_least_amounts_are_nothing(requests, nothing, request_of):
    assert request_of(pod([requests])).is_best_effort is nothing


def test_a_pod_may_ask_for_something_only_while_it_starts(request_of):
    found = request_of(pod([{}], [{"cpu": "1"}]))
    assert (found.runs_on_nothing, found.is_best_effort) == (True, False)


def test_floors_leave_the_slack(request_of):
    floors = dict(request_of(pod([{"cpu": "1", "memory": "100Mi"}])).floors)
    assert floors == {CPU: 991, MEMORY: 90 * MIB + 1}
    exact = request_of(pod([{"cpu": "1", "memory": "100Mi"}]), effective_requests, NO_SLACK)
    assert dict(exact.floors) == {CPU: 1000, MEMORY: 100 * MIB}


def test_pods_of_one_shape_share_a_request(request_of):
    columns = ResourceColumns()
    shapes = ShapeTable(columns)
    table = RequestTable(container_requests, KUBE_BATCH_SLACK, columns)
    first, second = (PodInfo(p, shapes.shape_of(p)) for p in (make_task("a"), make_task("b")))
    assert table.of(first) is table.of(second)


def test_slack_of_shares_is_finer_than_of_whole_things():
    slack = Slack()
    assert (slack.least(3), slack.least_part(3), slack.least_part(CPU)) == (1, 0.01, 1)
