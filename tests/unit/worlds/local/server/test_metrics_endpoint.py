"""The metrics page of a local cluster."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.request import ADMIN, Request
from fairlead.worlds.local.server.metrics_endpoint import PATH, MetricsEndpoint

MAPS = "/api/v1/namespaces/default/configmaps"
APPLY = "application/apply-patch+yaml"


@pytest.fixture
def samples(cluster):
    """Return a function that reads the current values by name and labels."""
    page = MetricsEndpoint(cluster.local.server, cluster.local.store)

    def read():
        response = asyncio.run(page(Request("GET", PATH, user=ADMIN)))
        assert response.content_type.startswith("text/plain")
        families = text_string_to_metric_families(b"".join(response.body).decode())
        return [sample for family in families for sample in family.samples]

    return read


def value(samples, name, **labels):
    found = [
        sample.value
        for sample in samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return sum(found)


def test_requests_are_counted_by_verb_scope_and_code(cluster, samples):
    """The labels have upstream's verbs and scopes, and the code of the response."""
    cluster.ask("POST", MAPS, {"metadata": {"name": "a"}})
    cluster.ask("POST", MAPS, {"metadata": {"name": "a"}})
    cluster.ask("GET", f"{MAPS}/a")
    cluster.ask("GET", MAPS)
    cluster.ask("GET", "/api/v1/configmaps")
    cluster.ask("DELETE", f"{MAPS}/a", query=(("dryRun", "All"),))
    body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "c"}}
    cluster.ask("PATCH", f"{MAPS}/a", body, APPLY, query=(("fieldManager", "me"),))
    found, name = samples(), "apiserver_request_total"
    labels = {"resource": "configmaps", "component": "apiserver", "group": "", "version": "v1"}
    assert value(found, name, verb="POST", scope="resource", code="201", **labels) == 1
    assert value(found, name, verb="POST", code="409", **labels) == 1
    assert value(found, name, verb="GET", scope="resource", code="200", **labels) == 1
    assert value(found, name, verb="LIST", scope="namespace", **labels) == 1
    assert value(found, name, verb="LIST", scope="cluster", **labels) == 1
    assert value(found, name, verb="DELETE", dry_run="All", **labels) == 1
    assert value(found, name, verb="APPLY", **labels) == 1


def test_unserved_names_are_not_used_as_label_values(cluster, samples):
    """A request for an unserved resource is counted without the resource's name."""
    cluster.ask("GET", "/api/v1/namespaces/default/nonsense")
    cluster.ask("GET", f"{MAPS}/a/nonsense")
    request = Request("BREW", "/version", user=ADMIN)
    cluster.local.server.handle(request, cluster.clock.now())
    found = [s for s in samples() if s.name == "apiserver_request_total"]
    assert not any("nonsense" in text for s in found for text in s.labels.values())
    assert value(found, "apiserver_request_total", verb="GET", resource="", code="404") == 2
    assert value(found, "apiserver_request_total", verb="OTHER") == 1


def test_stored_objects_and_watches_are_counted(cluster, samples):
    request = Request("GET", "/api/v1/pods", (("watch", "true"),), user=ADMIN)
    watch = cluster.local.server.handle(request, cluster.clock.now())
    found = samples()
    assert value(found, "apiserver_resource_objects", resource="nodes") == 3
    assert value(found, "apiserver_longrunning_requests", resource="pods", verb="WATCH") == 1
    assert value(found, "kubernetes_build_info", major="1") == 1
    watch.close()
    assert value(samples(), "apiserver_longrunning_requests", resource="pods") == 0


def test_the_metrics_page_refuses_other_methods_than_get(cluster):
    page = MetricsEndpoint(cluster.local.server, cluster.local.store)
    with pytest.raises(ApiError) as refused:
        asyncio.run(page(Request("POST", PATH, user=ADMIN)))
    assert refused.value.code == 405


def test_the_metrics_of_controllers_are_on_the_same_page(cluster):
    """Metrics of the scheduler, the node controllers and the batch scheduler."""
    local = cluster.local
    page = MetricsEndpoint(local.server, local.store, local.metrics.exposition)
    response = asyncio.run(page(Request("GET", PATH, user=ADMIN)))
    families = text_string_to_metric_families(b"".join(response.body).decode())
    names = {family.name for family in families}
    assert {
        "apiserver_request",
        "scheduler_pending_pods",
        "scheduler_schedule_attempts",
        "node_collector_zone_size",
        "kube_batch_schedule_attempts",
    } <= names
