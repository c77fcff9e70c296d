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
    with_request_name,
    write_of,
)
from fairlead.apiserver.endpoints.request.options import write_options
from fairlead.apiserver.endpoints.request.request_info import RequestInfo
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.negotiation.status import failure
from fairlead.apiserver.request import Request

FILE = Path(__file__).with_name("recorded_patches.jsonl.gz")
CASES = [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).splitlines()]
SERVERS = ("uid", "creationTimestamp", "resourceVersion", "generation", "selfLink")


class NoStore:
    """What a request needs of a server whose store is not asked."""

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
    """`live` after the patch, or it itself where nothing changed but times."""
    options, part = write_options(scope.request, "PatchOptions"), scope.info.subresource
    patcher = patcher_of(scope, options, scope.kind, part)
    write = write_of(scope, options, patcher.operation, part)
    made = patcher.created() if live is None else patcher.patched(live)
    made = own(write.tracked(live, with_request_name(scope, in_request_namespace(scope, made))))
    return own(live) if live is not None and write.is_same(own(live), made) else made


def own(obj):
    """`obj` without what a server says of it."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in SERVERS}
    return {**obj, "metadata": meta}


def ordered(obj):
    """`obj` so that the order of fields counts where upstream's does."""
    entries = obj["metadata"].get("managedFields", ())
    return obj, [json.dumps(entry.get("fieldsV1")) for entry in entries]


def told(status):
    """What a refusal says; fields that are wrong, and managers, come in any order."""
    causes = (status.get("details") or {}).get("causes") or status.get("causes") or []
    return sorted(status["message"].split("\n")), sorted(map(str, causes))


def answer(case):
    """Code, and an object or what a refusal says, and warnings."""
    scope = scope_of(case)
    try:
        made = ordered(patched(scope, case["live"]))
    except ApiError as refused:
        return refused.code, told(failure(refused)), scope.warnings
    return 200, made, scope.warnings


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']} {case['type']}")
def test_a_patch_has_upstreams_result_or_refusal(case):
    """The same object and owners, or the same refusal, and the same warnings."""
    is_done = case["code"] < 300
    said = ordered(own(case["answer"])) if is_done else told(case["answer"])
    assert answer(case) == (200 if is_done else case["code"], said, case["warnings"])


def test_accepted_and_refused_patches_of_all_types_are_recorded():
    """Enough of each type of patch, refused and not."""
    sorts = Counter((case["type"], case["code"] < 300) for case in CASES)
    assert len(sorts) == 8
    assert min(sorts.values()) > 9
