"""The newest timestamp in an object: the latest known time of a change of the object.

deletionTimestamp is left out, because it lies in the future until the grace period is over. An
object is searched as JSON or, for kinds with typed statuses, in typed form (`NewestTimestamp`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from fairlead.api.objects import Node
from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.apiserver.kind import Kind
from fairlead.engine.core.instant import Instant

# Plausible times of a dump. Earlier times are values such as Go's zero time. Later times leave too
# little room for simulated time before instants overflow.
EARLIEST: Final[Instant] = 0
LATEST: Final[Instant] = parse_timestamp("2250-01-01T00:00:00Z")
_TIME_KEYS: Final = frozenset(
    {
        "acquireTime",
        "completionTime",
        "finishedAt",
        "lastHeartbeatTime",
        "lastProbeTime",
        "lastScheduleTime",
        "lastSuccessfulTime",
        "lastTransitionTime",
        "lastUpdateTime",
        "renewTime",
        "startTime",
        "startedAt",
    }
)
_LEASE: Final = "leases.coordination.k8s.io"
_LENGTH: Final = len("2026-01-01T00:00:00Z")


def plausible_instant(text: str) -> Instant | None:
    """Return the instant of `text`; None if it is before 1970.

    Raises ValueError if `text` is malformed, or a time after the start of the year 2250.
    """
    instant = parse_timestamp(text)
    if instant > LATEST:
        raise ValueError(f"{text!r} is later than {format_timestamp(LATEST)}")
    return instant if instant >= EARLIEST else None


def timestamps(kind: Kind, value: Any) -> Iterator[str]:
    """Yield the creationTimestamp and the times in the status of `value`, an object as JSON.

    For a Lease, also yield the times in its spec.
    """
    created = value["metadata"].get("creationTimestamp")
    if isinstance(created, str):
        yield created
    yield from _times_below(value.get("status"))
    if kind.resource == _LEASE:
        yield from _times_below(value.get("spec"))


def _times_below(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, str):
                if key in _TIME_KEYS:
                    yield item
            elif isinstance(item, dict | list):
                yield from _times_below(item)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield from _times_below(item)


class _Condition(msgspec.Struct, rename="camel", gc=False):
    last_heartbeat_time: str | None = None
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    last_update_time: str | None = None


class _Interval(msgspec.Struct, rename="camel", gc=False):
    started_at: str | None = None
    finished_at: str | None = None


class _ContainerState(msgspec.Struct, gc=False):
    running: _Interval | None = None
    terminated: _Interval | None = None


class _ContainerStatus(msgspec.Struct, rename="camel", gc=False):
    state: _ContainerState | None = None
    last_state: _ContainerState | None = None


class _Status(msgspec.Struct, rename="camel", gc=False):
    """The timestamps in the status of a pod or a workload."""

    start_time: str | None = None
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None
    ephemeral_container_statuses: list[_ContainerStatus] | None = None


_decode_status: Final = msgspec.json.Decoder(_Status).decode


class NewestTimestamp:
    """Finds the newest timestamp of a pod, node or workload without building its JSON value."""

    def __init__(self) -> None:
        self._plausible: set[str] = set()

    def of_times(self, times: set[str]) -> str:
        """Return the newest of `times`; "" if a time has an unusual form or is not plausible.

        Texts of the usual form (`2026-01-01T00:00:00Z`) sort like their instants. If the result is
        "", the object must be searched as JSON.
        """
        if not self._plausible.issuperset(times):
            if not all(map(_is_usual, times)):
                return ""
            self._plausible.update(times)
        return max(times)


def times_of_node(node: Node) -> set[str]:
    """Return the timestamps of `node`; "" is one of them if a condition lacks a timestamp."""
    found = {node.metadata.creation_timestamp}
    for one in node.status.conditions:
        found.add(one.last_heartbeat_time)
        found.add(one.last_transition_time)
    return found


def times_of(created: str, status: msgspec.Raw) -> set[str]:
    """Return the set of `created` and the timestamps in `status`.

    Raises msgspec.ValidationError for a status with a field of the wrong type.
    """
    found: set[str | None] = {created}
    _collect_times(_decode_status(status), found)
    return {time for time in found if time is not None}


def _collect_times(status: _Status, times: set[str | None]) -> None:
    """Add the timestamps in `status` to `times`; add None if a time field is absent."""
    times.add(status.start_time)
    for one in status.conditions or ():
        times.add(one.last_heartbeat_time)
        times.add(one.last_probe_time)
        times.add(one.last_transition_time)
        times.add(one.last_update_time)
    for containers in (
        status.container_statuses,
        status.init_container_statuses,
        status.ephemeral_container_statuses,
    ):
        for container in containers or ():
            _collect_state_times(container.state, times)
            _collect_state_times(container.last_state, times)


def _collect_state_times(state: _ContainerState | None, times: set[str | None]) -> None:
    if state is None:
        return
    for interval in (state.running, state.terminated):
        if interval is not None:
            times.add(interval.started_at)
            times.add(interval.finished_at)


def _is_usual(text: str) -> bool:
    """Return whether `text` is a plausible timestamp in UTC and whole seconds."""
    try:
        is_plausible = plausible_instant(text) is not None
    except ValueError:
        return False
    return is_plausible and len(text) == _LENGTH and text.endswith("Z")
