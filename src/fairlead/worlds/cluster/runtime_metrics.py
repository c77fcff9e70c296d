"""Metrics of a running replica: its leadership, its watches and its requests.

upstream: component-base/metrics/prometheus/{clientgo/leaderelection,restclient}/metrics.go
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from fairlead.worlds.cluster.runner import ClusterRunner


class RuntimeMetrics(Collector):
    """Collects the metrics of a ClusterRunner at each scrape."""

    def __init__(self, runner: ClusterRunner) -> None:
        self._runner = runner

    def collect(self) -> Iterable[Metric]:
        """Yield the metric families with their current values."""
        runner = self._runner
        leads = GaugeMetricFamily(
            "leader_election_master_status",
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, "
            "1 indicates master. 'name' is the string used to identify the lease. Please make sure "
            "to group by name.",
            labels=["name"],
        )
        if runner.election is not None:
            leads.add_metric([runner.election.state.config.name], float(runner.is_leader))
        yield leads
        yield self._objects()
        relists = CounterMetricFamily(
            "fairlead_relists",
            "Lists read again because a watch had become too old.",
            labels=["resource"],
        )
        for one in runner.reflectors:
            relists.add_metric([one.resource.name], one.relists)
        yield relists
        for name, text, count in (
            ("fairlead_requests", "Requests sent for commands and events.", runner.requests),
            ("fairlead_events_dropped", "Events not written.", runner.events_dropped),
            (
                "fairlead_overcommitted_nodes",
                "Times that the pods of a node began to request more than is allocatable.",
                runner.overcommitments,
            ),
        ):
            yield CounterMetricFamily(name, text, value=count)

    def _objects(self) -> Metric:
        family = GaugeMetricFamily(
            "fairlead_watched_objects", "Objects known by list and watch.", labels=["resource"]
        )
        for one in self._runner.reflectors:
            if one.has_synced and one.is_served and not one.is_forbidden:
                family.add_metric([one.resource.name], len(one.objects))
        return family
