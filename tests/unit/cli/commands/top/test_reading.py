"""What `fairlead top` reads from a server whose objects are partly invalid."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest

from fairlead.cli.commands.top.reading import read_cluster_once
from fairlead.client.error import RequestError

NODES, PODS, EVENTS = "/api/v1/nodes", "/api/v1/pods", "/api/v1/events"
NODE_METRICS = "/apis/metrics.k8s.io/v1beta1/nodes"
POD_METRICS = "/apis/metrics.k8s.io/v1beta1/pods"
GOOD = {"metadata": {"name": "good"}}
LOTS = "'lots': quantities must match"
NO_TIME = "is not an RFC 3339 timestamp"


class Client:
    """A client of a server with these collections."""

    config = SimpleNamespace(name="context prod", server="https://prod")
    date = ""

    def __init__(self, collections):
        self.collections = collections

    async def get(self, path, _query=None):
        if path not in (NODES, PODS, EVENTS, NODE_METRICS, POD_METRICS):
            raise RequestError(self.config.server, 404, "NotFound", "not found")
        return json.dumps({"items": self.collections.get(path, [])}).encode()


def read(collections):
    return asyncio.run(read_cluster_once(Client(collections), ""))


def named(**fields):
    return {"metadata": {"name": "bad", "namespace": "shop"}, **fields}


def pod(requests=None, **spec):
    container = {"name": "c", "resources": {"requests": requests or {}}}
    return named(spec={"containers": [container], **spec})


@pytest.mark.parametrize(
    ("path", "item", "text"),
    [
        (NODES, {"metadata": {"name": "n"}, "status": "x"},
         "Node n (status: Expected `object`, got `str`)"),
        (NODES, {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "lots"}}},
         f"Node n (status.allocatable[cpu]: {LOTS}"),
        (NODES, {"metadata": None}, "Node (unnamed) (metadata.name: is required)"),
        (NODES, {"metadata": {"name": 5}}, "Node (unnamed) (metadata.name: Expected `str`"),
        (PODS, pod({"cpu": "lots"}),
         f"Pod shop/bad (spec.containers[0].resources.requests[cpu]: {LOTS}"),
        (PODS, pod({"cpu": "9" * 5000}),
         "Pod shop/bad (spec.containers[0].resources.requests[cpu]: '99999999999999999999…': "),
        (PODS, pod(overhead={"cpu": "lots"}), f"Pod shop/bad (spec.overhead[cpu]: {LOTS}"),
        (PODS, {"metadata": {"name": "p", "creationTimestamp": "soon"}},
         f"Pod p (metadata.creationTimestamp: 'soon' {NO_TIME}"),
        (EVENTS, named(lastTimestamp="soon"), f"Event shop/bad (lastTimestamp: 'soon' {NO_TIME}"),
        (EVENTS, named(eventTime="soon"), f"Event shop/bad (eventTime: 'soon' {NO_TIME}"),
        (EVENTS, named(series={"lastObservedTime": "soon"}),
         f"Event shop/bad (series.lastObservedTime: 'soon' {NO_TIME}"),
        (NODE_METRICS, {"metadata": {"name": "n"}, "usage": {"cpu": "lots"}},
         f"NodeMetrics n (usage[cpu]: {LOTS}"),
        (POD_METRICS, named(containers=[{"usage": {"memory": "lots"}}]),
         f"PodMetrics shop/bad (containers[0].usage[memory]: {LOTS}"),
    ],
)  # fmt: skip
def test_an_object_that_cannot_be_decoded_is_left_out_and_named(path, item, text):
    reading = read({path: [GOOD, item]})
    [left_out] = reading.left_out
    assert left_out[: len(text)] == text
    kept = {NODES: reading.nodes, PODS: reading.pods, EVENTS: reading.events}
    assert [one.metadata.name for one in kept.get(path, ())] == ["good"][: path in kept]


def test_fields_with_null_count_as_absent():
    event = {"metadata": {"name": "e"}, "involvedObject": None}
    reading = read({PODS: [{**GOOD, "spec": {"containers": None}}], EVENTS: [event]})
    assert (len(reading.pods), len(reading.events), reading.left_out) == (1, 1, ())


def test_the_usage_of_a_node_without_amounts_is_unknown():
    assert read({NODE_METRICS: [{**GOOD, "usage": None}]}).node_usage == {}
