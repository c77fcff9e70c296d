"""Reading: the state of a running cluster at one time, as shown in one frame of `fairlead top`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from fairlead.api.codec import UNNAMED, DecodeError, decode_as, without_nulls
from fairlead.api.objects import Node, Pod, QuantityText, ResourceList
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.quantity_check import quantity_check
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
_PROBLEM_MAX: Final = 200  # characters


@dataclass(frozen=True, slots=True)
class Usage:
    """Used, requested or allocatable resources: cpu in millicores, memory in bytes."""

    cpu: int
    memory: int


class _Reference(Struct):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class _Metadata(Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    creation_timestamp: str = ""


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
        text = last or self.event_time or self.metadata.creation_timestamp
        return parse_timestamp(text) if text else 0


class _Container(Struct):
    usage: ResourceList = field(default_factory=dict)


class _Metrics(Struct):
    metadata: _Metadata = field(default_factory=_Metadata)
    usage: ResourceList = field(default_factory=dict)
    containers: list[_Container] = field(default_factory=list)


class _Named(Struct):
    metadata: _Metadata = field(default_factory=_Metadata)


View = TypeVar("View", Node, Pod, Event, _Metrics)


@dataclass(frozen=True, slots=True)
class Reading:
    """A cluster at the time `now`, which is 0 if unknown.

    `node_usage` is keyed by the node's name, and `pod_usage` by the pod's key. `node_usage` and
    `pod_usage` are empty if the Metrics API is not served or refuses access. `left_out` names the
    objects that cannot be decoded, each with its problem.
    """

    name: str
    now: Instant
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    events: tuple[Event, ...]
    node_usage: Mapping[str, Usage]
    pod_usage: Mapping[str, Usage]
    left_out: tuple[str, ...] = ()


async def read_cluster_once(client: RestClient, namespace: str) -> Reading:
    """Read the nodes and pods of the cluster, with their metrics, and the events.

    Events and pod metrics are read only from `namespace`; "" means all namespaces. If the API
    server does not serve the events or metrics, or refuses access to them, the result does not
    contain them. Raises RequestError.
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
    left_out: list[str] = []
    return Reading(
        name=client.config.name,
        now=await _now(client),
        nodes=_decoded(nodes, "Node", Node, left_out),
        pods=_decoded(pods, "Pod", Pod, left_out),
        events=_decoded(events, "Event", Event, left_out),
        node_usage={
            one.metadata.name: _usage(one.usage)
            for one in _decoded(node_metrics, "NodeMetrics", _Metrics, left_out)
            if one.usage
        },
        pod_usage={
            _key(one.metadata): _pod_usage(one)
            for one in _decoded(pod_metrics, "PodMetrics", _Metrics, left_out)
        },
        left_out=tuple(left_out),
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


def _decoded(
    items: Iterable[Raw], kind: str, view: type[View], left_out: list[str]
) -> tuple[View, ...]:
    """Return `items`, decoded as `view`, without those that cannot be decoded.

    For each item that cannot be decoded, `left_out` gets a text with `kind`, the item's key and the
    problem. An item cannot be decoded if a field has the wrong type, if the item has no name, or if
    a quantity or timestamp does not parse.
    """
    decode, found = msgspec.json.Decoder(view).decode, []
    for item in items:
        try:
            try:
                one = decode(item)
            except msgspec.ValidationError:
                one = decode_as(view, without_nulls(msgspec.json.decode(item)))
            problem = _problem(one)
        except DecodeError as cause:
            problem = f"{cause.field}: {cause.problem}" if cause.field else cause.problem
        except msgspec.DecodeError as cause:
            problem = str(cause)
        if problem:
            left_out.append(f"{kind} {_key_of(item) or UNNAMED} ({problem[:_PROBLEM_MAX]})")
        else:
            found.append(one)
    return tuple(found)


def _problem(one: Node | Pod | Event | _Metrics) -> str:
    """Return the first wrong field of `one`, with the problem; "" if all fields are right."""
    if not one.metadata.name:
        return "metadata.name: is required"
    check = quantity_check(type(one))
    wrong = None if check is None else check(one)
    if wrong is not None:
        return f"{wrong.field}: {wrong.problem}"
    for name, text in _timestamps(one):
        try:
            if text:
                parse_timestamp(text)
        except ValueError as cause:
            return f"{name}: {cause}"
    return ""


def _timestamps(one: Node | Pod | Event | _Metrics) -> Iterator[tuple[str, str | None]]:
    """Yield (field, text) of the timestamps in `one` that are shown."""
    yield "metadata.creationTimestamp", one.metadata.creation_timestamp
    if isinstance(one, Event):
        yield "lastTimestamp", one.last_timestamp
        yield "eventTime", one.event_time
        if one.series is not None:
            yield "series.lastObservedTime", one.series.last_observed_time


def _key_of(item: Raw) -> str:
    try:
        return _key(msgspec.json.decode(item, type=_Named).metadata)
    except msgspec.DecodeError:
        return ""


def _key(meta: _Metadata) -> str:
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def _usage(amounts: Mapping[str, QuantityText]) -> Usage:
    return Usage(milli_value(amounts.get("cpu", "0")), whole_value(amounts.get("memory", "0")))


def _pod_usage(metrics: _Metrics) -> Usage:
    containers = [_usage(one.usage) for one in metrics.containers]
    return Usage(sum(one.cpu for one in containers), sum(one.memory for one in containers))
