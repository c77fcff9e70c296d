"""MetricsEndpoint: the metrics of the API server and the controllers, under upstream's names.

Upstream, each component has a separate endpoint. In a local cluster, one page contains the metrics
of all components.

upstream: apiserver/pkg/endpoints/metrics/metrics.go, pkg/storage/etcd3/metrics/metrics.go,
component-base/metrics/version.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from fairlead import __version__
from fairlead.apiserver.discovery.version import version_info
from fairlead.apiserver.endpoints.server import ApiServer
from fairlead.apiserver.negotiation.request_error import no_method
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import Request, Response

PATH: Final = "/metrics"
_COMPONENT: Final = "apiserver"
_REQUEST_LABELS: Final = (
    "code",
    "component",
    "dry_run",
    "group",
    "resource",
    "scope",
    "subresource",
    "verb",
    "version",
)


class MetricsEndpoint:
    """Serves the current metrics of `server`, `store` and the control plane."""

    def __init__(
        self, server: ApiServer, store: Store, controllers: Callable[[], bytes] = bytes
    ) -> None:
        """`controllers` returns the metrics of the schedulers and controllers as text.

        `controllers` is called at each request.
        """
        self._controllers = controllers
        self._registry = CollectorRegistry()
        self._registry.register(_ServerCollector(server, store))
        ProcessCollector(registry=self._registry)

    async def __call__(self, request: Request) -> Response:
        """Return the metrics page. Raises ApiError 405 for a method other than GET."""
        if request.method != "GET":
            raise no_method()
        pages = (generate_latest(self._registry), self._controllers())
        return Response(200, pages, CONTENT_TYPE_LATEST)


class _ServerCollector(Collector):
    """Collects the API server's metrics."""

    def __init__(self, server: ApiServer, store: Store) -> None:
        self._server = server
        self._store = store

    def collect(self) -> Iterator[Metric]:
        """Yield the API server's metric families, with their current values."""
        yield _built()
        yield self._requests()
        yield self._watches()
        yield self._objects()

    def _requests(self) -> Metric:
        family = CounterMetricFamily(
            "apiserver_request_total",
            "Counter of apiserver requests broken out for each verb, dry run value, group, "
            "version, resource, scope, component, and HTTP response code.",
            labels=_REQUEST_LABELS,
        )
        for count in self._server.counts:
            request = count.labels
            labels = (
                str(count.code),
                _COMPONENT if request.resource else "",
                request.dry_run,
                request.group,
                request.resource,
                request.scope,
                request.subresource,
                request.verb,
                request.version,
            )
            family.add_metric(labels, count.total)
        return family

    def _watches(self) -> Metric:
        family = GaugeMetricFamily(
            "apiserver_longrunning_requests",
            "Gauge of all active long-running apiserver requests broken out by verb, group, "
            "version and resource.",
            labels=("component", "group", "resource", "verb", "version"),
        )
        for kind in self._server.registry.all_kinds():
            count = self._server.watches.count(kind)
            if count:
                labels = (_COMPONENT, kind.group, kind.plural, "WATCH", kind.version)
                family.add_metric(labels, count)
        return family

    def _objects(self) -> Metric:
        family = GaugeMetricFamily(
            "apiserver_resource_objects",
            "Number of stored objects at the time of last check split by kind.",
            labels=("group", "resource"),
        )
        for kind in self._store.storage.kinds():
            count = sum(1 for _ in self._store.storage.stored_items(kind))
            family.add_metric((kind.group, kind.plural), count)
        return family


def _built() -> Metric:
    labels = ("git_version", "major", "minor")
    text = "A metric with a constant '1' value labeled by version."
    family = GaugeMetricFamily("kubernetes_build_info", text, labels=labels)
    info = version_info(__version__)
    family.add_metric((info["gitVersion"], info["major"], info["minor"]), 1)
    return family
