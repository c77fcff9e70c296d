"""Reading: the state of a running cluster at one time, as shown in one frame of `fairlead top`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from fairlead.api.objects import Node, Pod
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.timestamp import parse_timestamp
from fairlead.client.error import RequestError
from fairlead.client.list_objects import list_objects
from fairlead.client.rest_client import RestClient
from fairlead.engine.core.instant import Instant, seconds

NODES: Final = "/api/v1/nodes"
CLOCK: Final = "/fairlead/clock"
METRICS: Final = "/apis/metrics.k8s.io/v1beta1"
# Served from the API server's cache: the list may be a moment old, but costs much less.
_FROM_CACHE: Final = {"resourceVersion": "0"}
_ABSENT: Final = (403, 404, 503)
View = TypeVar("View")


@dataclass(frozen=True, slots=True)
class Usage:
    """Used, requested or allocatable resources: cpu in millicores, memory in bytes."""

    cpu: int
    memory: int


class _Reference(Struct):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class _Metadata(Struct):
    name: str = ""
    namespace: str = ""
    creation: str = field(default="", name="creationTimestamp")


class _Series(Struct, rename="camel"):
    last_observed_time: str | None = None


class Event(Struct, rename="camel"):
    """A core/v1 Event."""

    metadata: _Metadata = field(default_factory=_Metadata)
    involved_object: _Reference = field(default_factory=_Reference)
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    series: _Series | None = None

    @property
    def at(self) -> Instant:
        """The time of the last occurrence; 0 if it is unknown."""
        # upstream: pkg/printers/internalversion/printers.go: printEvent
        last = self.series.last_observed_time if self.series is not None else self.last_timestamp
        text = last or self.event_time or self.metadata.creation
        return parse_timestamp(text) if text else 0


class _Container(Struct):
    usage: dict[str, str] = field(default_factory=dict)


class _Metrics(Struct):
    metadata: _Metadata = field(default_factory=_Metadata)
    usage: dict[str, str] = field(default_factory=dict)
    containers: list[_Container] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Reading:
    """A cluster at the time `now`, which is 0 if unknown.

    `node_usage` is keyed by the node's name, and `pod_usage` by the pod's key. Both are empty if
    the Metrics API is not served or refuses access.
    """

    name: str
    now: Instant
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    events: tuple[Event, ...]
    node_usage: Mapping[str, Usage]
    pod_usage: Mapping[str, Usage]


async def read_cluster_once(client: RestClient, namespace: str) -> Reading:
    """Read the nodes and pods of the cluster, with their metrics, and the events.

    Events and pod metrics are read only from `namespace`; "" means all namespaces. If the API
    server does not serve the events or metrics, or refuses access to them, the result contains
    none. Raises RequestError.
    """
    inside = f"/namespaces/{namespace}" if namespace else ""
    nodes, pods, events, node_metrics, pod_metrics = await asyncio.gather(
        list_objects(client, NODES, _FROM_CACHE),
        # Pods of all namespaces are read, because they count for the load of nodes.
        list_objects(client, "/api/v1/pods", _FROM_CACHE),
        _if_readable(client, f"/api/v1{inside}/events"),
        _if_readable(client, f"{METRICS}/nodes"),
        _if_readable(client, f"{METRICS}{inside}/pods"),
    )
    return Reading(
        name=client.config.name,
        now=await _now(client),
        nodes=_decoded(nodes, Node),
        pods=_decoded(pods, Pod),
        events=_decoded(events, Event),
        node_usage={
            one.metadata.name: _usage(one.usage) for one in _decoded(node_metrics, _Metrics)
        },
        pod_usage={
            f"{one.metadata.namespace}/{one.metadata.name}": _pod_usage(one)
            for one in _decoded(pod_metrics, _Metrics)
        },
    )


async def _if_readable(client: RestClient, path: str) -> list[Raw]:
    try:
        return await list_objects(client, path, _FROM_CACHE)
    except RequestError as refusal:
        if refusal.code in _ABSENT:
            return []
        raise


async def _now(client: RestClient) -> Instant:
    """Return the current time of the cluster; 0 if it is not known.

    A cluster of `fairlead up` reports the time of its clock. For any other cluster, the result is
    the date in the API server's latest response.
    """
    try:
        state: dict[str, Any] = msgspec.json.decode(await client.get(CLOCK))
        return parse_timestamp(str(state["now"]))
    except (RequestError, msgspec.DecodeError, KeyError, TypeError, ValueError):
        try:
            return seconds(int(parsedate_to_datetime(client.date).timestamp()))
        except (ValueError, TypeError):
            return 0


def _decoded(items: list[Raw], view: type[View]) -> tuple[View, ...]:
    """Return `items`, decoded as `view`, without those that cannot be decoded."""
    decode, found = msgspec.json.Decoder(view).decode, []
    for item in items:
        try:
            found.append(decode(item))
        except msgspec.DecodeError:
            continue
    return tuple(found)


def _usage(amounts: Mapping[str, str]) -> Usage:
    return Usage(milli_value(amounts.get("cpu", "0")), whole_value(amounts.get("memory", "0")))


def _pod_usage(metrics: _Metrics) -> Usage:
    containers = [_usage(one.usage) for one in metrics.containers]
    return Usage(sum(one.cpu for one in containers), sum(one.memory for one in containers))
