"""RequestCounts: the number of requests by verb, resource and status code.

upstream: apiserver/pkg/endpoints/metrics/metrics.go (apiserver_request_total)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct

from fairlead.apiserver.endpoints.request_scope import RequestScope

# upstream: metrics.go:CanonicalVerb, cleanVerb
_VERBS: Final[Mapping[str, str]] = MappingProxyType({"create": "POST", "update": "PUT"})
_APPLY_TYPES: Final = "application/apply-patch+"


class RequestLabels(NamedTuple):
    """The labels of the metric `apiserver_request_total`, except `code` and `component`.

    For a path without a resource, all labels from `group` to `scope` are "".
    """

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    scope: str = ""
    dry_run: str = ""


OTHER: Final = RequestLabels("OTHER")
# requests for paths without a resource
BY_METHOD: Final[Mapping[str, RequestLabels]] = MappingProxyType(
    {method: RequestLabels(method) for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")}
)


class LabelledCount(Struct, frozen=True):
    """The number of requests (`total`) that have the labels `labels` and the status code `code`."""

    labels: RequestLabels
    code: int
    total: int


class RequestCounts:
    """Counts the requests to which the server has responded.

    Requests for resources that are not served are counted by method only.
    """

    def __init__(self) -> None:
        self._totals: dict[tuple[RequestLabels, int], int] = {}

    def add(self, labels: RequestLabels, code: int) -> None:
        """Count one request."""
        key = labels, code
        self._totals[key] = self._totals.get(key, 0) + 1

    def __iter__(self) -> Iterator[LabelledCount]:
        """Yield all counts, in the order in which their labels and codes first occurred."""
        for (labels, code), total in self._totals.items():
            yield LabelledCount(labels, code, total)


def labels_of(scope: RequestScope) -> RequestLabels:
    """Return the labels of the metric `apiserver_request_total` for a request."""
    kind, target, request = scope.kind, scope.info, scope.request
    verb = _VERBS.get(scope.verb) or scope.verb.upper()
    if verb == "PATCH" and request.headers.get("content-type", "").startswith(_APPLY_TYPES):
        verb = "APPLY"
    dry_run = request.parameter("dryRun") if request.query else ""
    return RequestLabels(
        verb,
        kind.group,
        kind.version,
        kind.plural,
        target.subresource,
        _scope(scope),
        "All" if dry_run else "",
    )


def _scope(scope: RequestScope) -> str:
    # upstream: metrics.go:CleanScope
    if scope.info.name or scope.verb == "create":
        return "resource"
    return "namespace" if scope.info.namespace else "cluster"
