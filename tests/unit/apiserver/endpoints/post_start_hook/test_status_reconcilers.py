"""Statuses of FlowSchemas and APIServices, written by the API server."""

from __future__ import annotations

import pytest

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.apiserver.endpoints.post_start_hook.reconcile_delay import ReconcileDelay
from fairlead.apiserver.endpoints.post_start_hook.status_reconcilers import StatusReconcilers

FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
LEVELS = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
SERVICES = "/api/v1/namespaces/default/services"


def flow(level):
    spec = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": 9000}
    return {"metadata": {"name": "f"}, "spec": spec}


def level(name):
    limited = {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}
    return {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}}


def api_service(**spec):
    group = {"group": "example.com", "version": "v1"}
    priorities = {"groupPriorityMinimum": 10, "versionPriority": 10}
    return {"metadata": {"name": "v1.example.com"}, "spec": {**group, **priorities, **spec}}


def condition(answer):
    (found,) = answer.json["status"]["conditions"]
    return found["status"], found["reason"]


@pytest.mark.parametrize(
    ("named", "said"), [("exempt", ("False", "Found")), ("mine", ("True", "NotFound"))]
)
def test_a_flow_schema_has_a_dangling_condition(api, named, said):
    assert api.post(FLOWS, flow(named)).json["status"] == {}
    assert condition(api.get(f"{FLOWS}/f")) == said


def test_a_flow_schema_status_follows_a_new_priority_level(api):
    api.post(FLOWS, flow("mine"))
    assert api.post(LEVELS, level("mine")).status == 201
    assert condition(api.get(f"{FLOWS}/f")) == ("False", "Found")


def test_the_status_of_a_flow_schema_is_applied_by_its_controller(api):
    api.post(FLOWS, flow("exempt"))
    entry = api.get(f"{FLOWS}/f").json["metadata"]["managedFields"][0]
    assert (entry["operation"], entry["subresource"]) == ("Apply", "status")


def test_conditions_of_other_managers_are_kept(api):
    api.post(FLOWS, flow("mine"))
    other = {"status": {"conditions": [{"type": "Other", "status": "True"}]}}
    assert api.patch(f"{FLOWS}/f/status?fieldManager=other", other).status == 200
    api.post(LEVELS, level("mine"))
    found = api.get(f"{FLOWS}/f").json
    assert {one["type"] for one in found["status"]["conditions"]} == {"Dangling", "Other"}
    owners = [
        one["manager"]
        for one in found["metadata"]["managedFields"]
        if 'k:{"type":"Other"}' in one["fieldsV1"].get("f:status", {}).get("f:conditions", {})
    ]
    assert owners == ["other"]


def test_an_api_service_without_a_service_is_local(api):
    api.post(API_SERVICES, api_service())
    assert condition(api.get(f"{API_SERVICES}/v1.example.com")) == ("True", "Local")


def test_the_condition_of_an_api_service_names_the_problem_of_its_service(api):
    api.post(API_SERVICES, api_service(service={"namespace": "default", "name": "s"}))
    url = f"{API_SERVICES}/v1.example.com"
    assert condition(api.get(url)) == ("False", "ServiceNotFound")
    api.post(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    assert condition(api.get(url)) == ("False", "ServicePortError")


def test_a_second_reconciliation_changes_nothing(api):
    api.post(FLOWS, flow("exempt"))
    version = api.get(f"{FLOWS}/f").json["metadata"]["resourceVersion"]
    assert api.post(LEVELS, level("other")).status == 201
    assert api.get(f"{FLOWS}/f").json["metadata"]["resourceVersion"] == version


def test_a_delayed_status_is_written_when_it_is_due(api):
    upkeep = StatusReconcilers(api.store, ReconcileDelay(flow_status=NANOSECONDS_PER_SECOND))
    # A created object that bypasses the API: the server's own reconciler would write it first.
    obj = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", **flow("exempt")}
    api.store.create(obj, api.now)
    upkeep.reconcile(api.now)
    assert upkeep.waits
    upkeep.reconcile(api.now + NANOSECONDS_PER_SECOND)
    assert not upkeep.waits
