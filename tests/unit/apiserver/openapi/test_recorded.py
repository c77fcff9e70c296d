"""OpenAPI documents, equal to those of kube-apiserver 1.36.2 except for descriptions."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from fairlead.apiserver.openapi.documents import OpenApi
from fairlead.apiserver.openapi.v3 import document
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.request import Request
from fairlead.conformance.api.comparison.openapi import as_published, without_words

FILE = Path(__file__).parents[3] / "golden/data/api/01-discovery.jsonl.gz"
CASES = {
    case["id"]: case["steps"][0]
    for case in map(json.loads, gzip.decompress(FILE.read_bytes()).splitlines())
}
DOCUMENTS = ["policy.v1", "scheduling.k8s.io.v1", "coordination.k8s.io.v1"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_equals_upstreams(name):
    recorded = CASES[f"disc.openapi.v3.apis.{name}"]["response"]["body"]
    group, _, version = name.rpartition(".")
    ours = without_words(document(ServedKinds(), group, version))
    assert ours == without_words(as_published(recorded))


def test_the_index_equals_upstreams():
    recorded = CASES["disc.openapi.v3"]["response"]["body"]["paths"]
    answer = OpenApi(ServedKinds(), "0.1")(Request("GET", "/openapi/v3"), 0)
    assert list(json.loads(answer.body[0])["paths"]) == list(recorded)
