"""The subresource `log`: a synthetic log of a simulated container.

The log has up to three lines: the container starts, is asked to stop, and ends. If a client
follows the log, the response is a watch that sends new lines until the container ends.

upstream: pkg/registry/core/pod/{rest/log.go,strategy.go:LogLocation},
pkg/apis/core/validation/validation.go:ValidatePodLogOptions,
pkg/kubelet/kubelet_pods.go:validateContainerLogStatus, cri-client/pkg/logs
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.timestamp import (
    NANOSECONDS_PER_SECOND,
    format_micro_time,
    parse_timestamp,
)
from fairlead.apiserver.endpoints.collection.watch import Watch, WatchScope
from fairlead.apiserver.endpoints.handlers.rest import existing_object
from fairlead.apiserver.endpoints.handlers.watch import WATCH_TIMEOUT_S
from fairlead.apiserver.endpoints.request.options import integer, is_true
from fairlead.apiserver.endpoints.request.selector import selection_predicate
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.endpoints.subresources.connect import chosen_container
from fairlead.apiserver.error import Cause, bad_request, invalid
from fairlead.apiserver.kind import POD, Kind
from fairlead.apiserver.request import Response
from fairlead.apiserver.storage.storage import StoredObject, value_of

OPTIONS: Final = Kind("", "v1", "PodLogOptions", "podlogoptions")
TEXT: Final = "text/plain"
_STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_CREATED: Final[Json] = {"state": {"waiting": {"reason": "ContainerCreating"}}}
_UNPULLED: Final = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class LogLine(Struct, frozen=True):
    """One line of a container's log; `at` is its time in ns since 1970."""

    at: int
    text: str


class LogOptions(Struct, frozen=True, kw_only=True):
    """The options of a request for a log (PodLogOptions).

    `since` is in ns since 1970. `tail` is a number of lines; None means all lines. `bytes_max` is
    the option `limitBytes`; None means no limit. `has_times` is the option `timestamps`.
    """

    since: int = 0
    tail: int | None = None
    bytes_max: int | None = None
    has_times: bool = False
    is_previous: bool = False
    follows: bool = False


def log(scope: RequestScope) -> Response | Watch:
    """Return the log of a container; if the request follows the log, return a watch.

    Raises ApiError 400, 404, 406, 422.
    """
    scope.negotiate()
    pod = existing_object(scope)
    options = _options(scope)
    name = chosen_container(scope, pod)
    if not pod["spec"].get("nodeName"):
        return Response(200, (b"",), TEXT)
    _require_log(pod, name, is_previous=options.is_previous)
    lines = [line for line in _life(pod, name, options) if line.at >= options.since]
    lines = lines if options.tail is None else lines[max(0, len(lines) - options.tail) :]
    text = _text(lines, options)[: options.bytes_max]
    if options.follows and not options.is_previous and not _has_ended(pod, name):
        return _followed(scope, pod, name, options, text)
    return Response(200, (text,), TEXT)


def _options(scope: RequestScope) -> LogOptions:
    request, causes = scope.request, []
    tail, limit = integer(request, "tailLines"), integer(request, "limitBytes")
    seconds, time = integer(request, "sinceSeconds"), request.parameter("sinceTime")
    if tail is not None and tail < 0:
        causes.append(_wrong("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        causes.append(_wrong("limitBytes", limit, "must be greater than 0"))
    if seconds is not None and time:
        text = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"
        causes.append(Cause("FieldValueForbidden", text))
    elif seconds is not None and seconds < 1:
        causes.append(_wrong("sinceSeconds", seconds, "must be greater than 0"))
    if causes:
        raise invalid(OPTIONS, "", scope.info.name, tuple(causes))
    since = 0 if seconds is None else scope.now - seconds * NANOSECONDS_PER_SECOND
    return LogOptions(
        since=_time(time) if time else since,
        tail=tail,
        bytes_max=limit,
        has_times=is_true(request, "timestamps"),
        is_previous=is_true(request, "previous"),
        follows=is_true(request, "follow"),
    )


def _wrong(field_name: str, value: int, why: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {value}: {why}", field_name)


def _time(text: str) -> int:
    try:
        return parse_timestamp(text)
    except ValueError as cause:
        raise bad_request(str(cause)) from None


def _status(pod: Json, name: str) -> Json | None:
    status = pod.get("status", {})
    rows = (row for field_name in _STATUSES for row in status.get(field_name) or ())
    return next((row for row in rows if row["name"] == name), None)


def _require_log(pod: Json, name: str, *, is_previous: bool) -> None:
    """Raise ApiError 400 if the container has no run whose log can be shown.

    If `is_previous` is True, only a previous run that has ended counts.
    """
    named, status = f'container "{name}" in pod "{pod["metadata"]["name"]}"', _status(pod, name)
    if status is None and not any(pod.get("status", {}).get(rows) for rows in _STATUSES):
        status = _CREATED  # the kubelet has not reported any status yet
    if status is None:
        raise bad_request(f"{named} is not available")
    state, last = status.get("state") or {}, status.get("lastState") or {}
    if is_previous:
        if "terminated" not in last:
            raise bad_request(f"previous terminated {named} not found")
        return
    if "running" in state or "terminated" in state or "terminated" in last:
        return
    if "waiting" not in state:
        raise bad_request(f"{named} is waiting to start - no logs yet")
    reason = state["waiting"].get("reason", "")
    raise bad_request(f"{named} is waiting to start: {_UNPULLED.get(reason, reason)}")


def _has_ended(pod: Json, name: str) -> bool:
    status = _status(pod, name) or {}
    return "running" not in (status.get("state") or {})


def _life(pod: Json, name: str, options: LogOptions) -> Iterator[LogLine]:
    """Yield the log lines of the current or previous run of a container, oldest first."""
    status = _status(pod, name) or {}
    state, last = status.get("state") or {}, status.get("lastState") or {}
    if options.is_previous or not ("running" in state or "terminated" in state):
        state = last
    run, ended = state.get("running") or {}, state.get("terminated") or {}
    started = run.get("startedAt") or ended.get("startedAt")
    node = pod["spec"].get("nodeName", "")
    if started:
        text = f"{name} started on {node} (simulated: nothing is executed)"
        yield LogLine(parse_timestamp(started), text)
    deletion_timestamp = pod["metadata"].get("deletionTimestamp")
    if deletion_timestamp and not options.is_previous:
        grace_s = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        at = parse_timestamp(deletion_timestamp) - grace_s * NANOSECONDS_PER_SECOND
        if not ended or at <= parse_timestamp(ended["finishedAt"]):
            yield LogLine(at, f"{name} is asked to stop within {grace_s} s")
    if ended:
        code, reason = ended.get("exitCode", 0), ended.get("reason", "")
        text = f"{name} ended with exit code {code}" + (f" ({reason})" if reason else "")
        yield LogLine(parse_timestamp(ended["finishedAt"]), text)


def _text(lines: list[LogLine], options: LogOptions) -> bytes:
    return "".join(f"{_stamp(line, options)}{line.text}\n" for line in lines).encode()


def _stamp(line: LogLine, options: LogOptions) -> str:
    """Return the timestamp prefix of a line, with nanoseconds; "" if none is requested."""
    if not options.has_times:
        return ""
    return f"{format_micro_time(line.at).removesuffix('Z')}000Z "


class _LogWatch(Watch):
    """A watch that drops the empty events of `_LogEncoder`.

    An event is empty if the change of the pod adds no line to the log.
    """

    def add(self, line: bytes) -> None:
        """Queue the encoded event `line`; ignore an empty `line`."""
        if line:
            super().add(line)


class _LogEncoder(Struct, eq=False):
    """Encodes a change of a pod as the new lines of a container's log.

    `sent` is the number of lines that have already been sent. `watch` is a list with one item: the
    watch that sends the lines. The encoder ends this watch when the container ends or the pod is
    deleted.
    """

    name: str
    options: LogOptions
    sent: int
    watch: list[Watch] = field(default_factory=list)

    def event(self, name: str, obj: StoredObject, *, is_first: bool) -> bytes:
        """Return the new lines of the log. If the container or pod has ended, end the watch."""
        pod = value_of(obj)
        lines = list(_life(pod, self.name, self.options))
        new, self.sent = lines[self.sent :], max(self.sent, len(lines))
        if name == "DELETED" or _has_ended(pod, self.name):
            for watch in self.watch:
                watch.close()
        return _text(new, self.options)

    @property
    def is_shared(self) -> bool:
        """False: the method `event` returns only lines that this watch has not yet sent."""
        return False


def _followed(scope: RequestScope, pod: Json, name: str, options: LogOptions, text: bytes) -> Watch:
    watches = scope.deps.watches
    encoder = _LogEncoder(name, options, len(list(_life(pod, name, options))))
    predicate = selection_predicate(POD, "", "", scope.info.name)
    version = scope.deps.store.version
    opened = _LogWatch(
        WatchScope(POD, scope.info.namespace, predicate, encoder, version),
        timeout_s=WATCH_TIMEOUT_S,
        bookmark_s=None,
        content_type=TEXT,
        close=watches.remove,
    )
    encoder.watch.append(opened)
    opened.add(text)
    watches.add(opened)
    return opened
