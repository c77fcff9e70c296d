"""The resources that a task uses and needs to start, by the rules of kube-batch and Kubernetes."""

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


def test_kube_batch_sums_the_requests_of_containers(request_of):
    found = request_of(pod([{"cpu": "1", "memory": "1Mi"}, {"cpu": "500m"}]))
    assert dict(found.running) == {CPU: 1500, MEMORY: MIB}
    assert found.running == found.starting


def test_kube_batch_counts_init_containers_only_at_the_start(request_of):
    found = request_of(pod([{"cpu": "1"}], [{"cpu": "3"}, {"cpu": "2"}]))
    assert (dict(found.running), dict(found.starting)) == ({CPU: 1000}, {CPU: 3000, MEMORY: 0})


def test_kubernetes_counts_overhead_and_kube_batch_does_not(request_of):
    heavy = pod([{"cpu": "1"}], [{"cpu": "3"}], overhead={"cpu": "250m"})
    assert dict(request_of(heavy).running) == {CPU: 1000}
    found = request_of(heavy, effective_requests, NO_SLACK)
    assert dict(found.running) == dict(found.starting) == {CPU: 3250}


def test_kube_batch_does_not_count_ephemeral_storage(request_of):
    found = request_of(pod([{"cpu": "1", "ephemeral-storage": "1Gi"}]))
    assert dict(found.running) == {CPU: 1000}


def test_the_surplus_is_what_the_node_counts_beyond_the_rule(request_of):
    found = request_of(pod([{"cpu": "1", "memory": "1Mi"}], [{"cpu": "3"}]))
    assert dict(found.surplus) == {CPU: 2000}
    assert found.has_surplus
    assert not request_of(make_task("plain")).has_surplus


def test_nonzero_requests_use_defaults_for_each_container(request_of):
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
def test_requests_below_the_minimum_amounts_are_best_effort(requests, nothing, request_of):
    assert request_of(pod([requests])).is_best_effort is nothing


def test_a_pod_whose_init_container_alone_has_requests_is_not_best_effort(request_of):
    found = request_of(pod([{}], [{"cpu": "1"}]))
    assert (found.runs_on_nothing, found.is_best_effort) == (True, False)


def test_floors_are_requests_minus_the_slack(request_of):
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


def test_the_slack_of_shares_is_smaller_than_that_of_amounts():
    slack = Slack()
    assert (slack.least(3), slack.least_part(3), slack.least_part(CPU)) == (1, 0.01, 1)
