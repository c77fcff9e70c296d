"""Discovery documents, equal to those of kube-apiserver 1.36.2 except for whitespace."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from fairlead.apiserver.discovery.documents import api_group_discovery_list, paths
from fairlead.apiserver.discovery.health import CHECKS, health_report
from fairlead.apiserver.discovery.legacy import (
    api_group,
    api_group_list,
    api_resource_list,
    api_versions,
)
from fairlead.apiserver.registry.served_kinds import ServedKinds

FILE = Path(__file__).parents[3] / "golden/data/api/01-discovery.jsonl.gz"
KINDS = {"APIVersions", "APIGroupList", "APIGroup", "APIResourceList", "APIGroupDiscoveryList"}
REGISTRY = ServedKinds()


CASES = [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).splitlines()]


def recorded():
    """The recorded documents by request."""
    for case in CASES:
        for number, step in enumerate(case["steps"]):
            body, path = step["response"].get("body"), step["request"]["path"].rstrip("/")
            if step["response"]["status"] == 200 and is_document(path, body):
                yield pytest.param(path, body, id=f"{case['id']}.{number}")


def is_document(path, body):
    return isinstance(body, dict) and (body.get("kind") in KINDS or ("paths" in body and not path))


def reports():
    """The recorded health reports by request."""
    for case in CASES:
        request, response = case["steps"][0]["request"], case["steps"][0]["response"]
        endpoint, body = request["path"][1:], response["body"]
        if endpoint in CHECKS and body:
            yield pytest.param(endpoint, request["query"], body["$text"], id=case["id"])


def document(path, body):
    match body.get("kind"), path.split("/"):
        case "APIVersions", _:
            return api_versions("10.0.0.1:26443")
        case "APIGroupList", _:
            return api_group_list(REGISTRY)
        case "APIGroup", [_, _, group]:
            return api_group(REGISTRY, group)
        case "APIResourceList", [_, "api", version]:
            return api_resource_list(REGISTRY, "", version)
        case "APIResourceList", [_, _, group, version]:
            return api_resource_list(REGISTRY, group, version)
        case "APIGroupDiscoveryList", _:
            return api_group_discovery_list(REGISTRY, is_core=path == "/api")
        case _:
            return paths(REGISTRY)


@pytest.mark.parametrize(("path", "body"), [*recorded()])
def test_a_document_equals_upstreams(path, body):
    assert json.dumps(document(path, body)) == json.dumps(body)


@pytest.mark.parametrize(("endpoint", "query", "text"), [*reports()])
def test_a_health_report_equals_upstreams(endpoint, query, text):
    verbose = any(key == "verbose" for key, _ in query)
    excluded = [value for key, value in query if key == "exclude"]
    assert health_report(endpoint, verbose=verbose, excluded=excluded) == (200, text)


def test_unserved_groups_and_versions_have_no_document():
    assert api_group(REGISTRY, "nope.example.com") is None
    assert api_group(REGISTRY, "") is None
    assert api_resource_list(REGISTRY, "apps", "v9") is None
