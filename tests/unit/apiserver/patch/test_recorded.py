"""Results and refusals of patches of all four types, recorded from upstream 1.36.4.

Each line of the file has a live object of a built-in kind, a patch, and the response of upstream's
handlers (apiserver, apimachinery, structured-merge-diff), without defaults and strategies.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from fairlead.apiserver.endpoints.handlers.patcher import patcher_of
from fairlead.apiserver.endpoints.handlers.rest import (
    in_request_namespace,
    require_request_name,
    write_of,
)
from fairlead.apiserver.endpoints.request.options import write_options
from fairlead.apiserver.endpoints.request.request_info import RequestInfo
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.negotiation.status import failure
from fairlead.apiserver.request import Request
from fairlead.apiserver.suspension import run_to_end

FILE = Path(__file__).with_name("recorded_patches.jsonl.gz")
CASES = [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).splitlines()]
SERVERS = ("uid", "creationTimestamp", "resourceVersion", "generation", "selfLink")


class NoStore:
    """Provides the attributes of a server that a patch needs; it has no store."""

    identity = None


def scope_of(case):
    kind = kind_of({"apiVersion": case["apiVersion"], "kind": case["kind"]})
    request = Request(
        method="PATCH",
        path="/",
        query=tuple(parse_qsl(case["query"])),
        headers={"content-type": f"application/{case['type']}", "user-agent": "agent/1"},
        body=case["body"].encode(),
    )
    namespace = "ns" if kind.namespaced else ""
    info = RequestInfo(kind.group, kind.version, kind.plural, namespace, "n", case["sub"])
    return RequestScope(NoStore(), request, info, kind, "patch", case["now"] * 1_000_000_000)


def patched(scope, live):
    """Return `live` after the patch, or `live` itself if only times would change."""
    options, part = write_options(scope.request, "PatchOptions"), scope.info.subresource
    patcher = patcher_of(scope, options, scope.kind, part)
    write = write_of(scope, options, patcher.operation, part)
    made = run_to_end(patcher.created() if live is None else patcher.patched(live))
    made = own(write.tracked(live, require_request_name(scope, in_request_namespace(scope, made))))
    return own(live) if live is not None and write.is_same(own(live), made) else made


def own(obj):
    """Return `obj` without the metadata that the server sets."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in SERVERS}
    return {**obj, "metadata": meta}


def ordered(obj):
    """Return `obj` in a form in which the order of fieldsV1 is compared, too."""
    entries = obj["metadata"].get("managedFields", ())
    return obj, [json.dumps(entry.get("fieldsV1")) for entry in entries]


def summary(status):
    """Return the message and the causes of a refusal, both sorted, because their order varies."""
    causes = (status.get("details") or {}).get("causes") or status.get("causes") or []
    return sorted(status["message"].split("\n")), sorted(map(str, causes))


def answer(case):
    """Return the code, the object or the refusal, and the warnings."""
    scope = scope_of(case)
    try:
        made = ordered(patched(scope, case["live"]))
    except ApiError as refused:
        return refused.code, summary(failure(refused)), scope.warnings
    return 200, made, scope.warnings


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']} {case['type']}")
def test_a_patch_has_upstreams_result_or_refusal(case):
    """The object and its owners, or the refusal, and the warnings are equal to upstream's."""
    is_done = case["code"] < 300
    said = ordered(own(case["answer"])) if is_done else summary(case["answer"])
    assert answer(case) == (200 if is_done else case["code"], said, case["warnings"])


def test_accepted_and_refused_patches_of_all_types_are_recorded():
    """Each type of patch has at least ten accepted and ten refused cases."""
    sorts = Counter((case["type"], case["code"] < 300) for case in CASES)
    assert len(sorts) == 8
    assert min(sorts.values()) > 9
