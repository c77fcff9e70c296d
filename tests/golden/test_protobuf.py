"""Protobuf requests recorded from Go clients are sent to our server, and answers compared.

They were recorded from a stock kube-scheduler and kube-controller-manager and from kubectl's typed
commands. Values that the server generates (uids, generated names, addresses) are not compared, nor
are empty fields.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from fairlead.api.json import Json
from fairlead.apiserver.protobuf.decoder import decode
from fairlead.conformance.api.exchange import ReplayRequest
from fairlead.conformance.api.server.in_process import InProcess

RECORDED: Final = Path(__file__).parent / "data" / "api"
THEMES: Final = ("06-kubectl", "07-clients")
# Tokens are for accounts that do not exist here, and rules depend on the user.
NOT_ALONE: Final = ("TokenRequest", "SelfSubjectRulesReview")
MADE_UP: Final = frozenset(
    ("uid", "resourceVersion", "creationTimestamp", "managedFields", "clusterIP", "clusterIPs")
)
_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SUFFIX: Final = re.compile(r"-[a-z0-9]{5}$")
_NAMESPACE: Final = re.compile(r"/namespaces/([\w.-]+)")


def unpacked(body: object) -> Json | None:
    match body:
        case {"$protobuf": {"b64": str(text)}}:
            return decode(base64.b64decode(text))
        case _:
            return None


def sent() -> Iterator[tuple[Json, Json, Json]]:
    """Yield each recorded step that created an object, its request, and its response."""
    for theme in THEMES:
        with gzip.open(RECORDED / f"{theme}.jsonl.gz", "rt") as lines:
            steps = [step for line in lines for step in json.loads(line).get("steps", ())]
        for step in steps:
            request, response = step["request"], step["response"]
            is_fixed = request["method"] == "POST" and "<" not in request["path"]
            if not is_fixed or response.get("status") != 201:
                continue
            sent, received = unpacked(request["body"]), unpacked(response["body"])
            if sent and received and received["kind"] not in (*NOT_ALONE, "Status"):
                yield step, sent, received


def plain(value: Any) -> Any:
    """Return `value` without generated and empty fields."""
    match value:
        case dict():
            shown = {k: plain(v) for k, v in value.items() if k not in MADE_UP}
            return {k: v for k, v in shown.items() if v not in (None, {}, [], "")}
        case list():
            return [plain(item) for item in value]
        case str():
            return _SUFFIX.sub("-", _UID.sub("uid", value))
        case _:
            return value


def without_ports(obj: Json) -> Json:
    ports = obj.get("spec", {}).get("ports", ())
    for port in ports if obj["kind"] == "Service" else ():
        port.pop("nodePort", None)
    return obj


def repeat_request(step: Json) -> tuple[int, Json]:
    server, request = InProcess(), step["request"]

    def post(path: str, body: bytes, **headers: str) -> Any:
        query = tuple((key, str(value)) for key, value in request["query"])
        asking = ReplayRequest(
            method="POST", path=path, query=query, headers=headers, body=body, user="admin"
        )
        return server.ask(asking)

    namespace = _NAMESPACE.search(request["path"])
    if namespace is not None:
        meta = {"metadata": {"name": namespace[1]}}
        post("/api/v1/namespaces", json.dumps(meta).encode())
        account = json.dumps({"metadata": {"name": "default"}}).encode()
        post(f"/api/v1/namespaces/{namespace[1]}/serviceaccounts", account)
    body = base64.b64decode(request["body"]["$protobuf"]["b64"])
    got = post(request["path"], body, **request["headers"])
    return got.status, json.loads(got.body)


CASES: Final = list(sent())


def test_the_recording_has_many_kinds():
    kinds = {answered["kind"] for _, _, answered in CASES}
    assert len(CASES) >= 60
    assert {"Event", "Pod", "Job", "Deployment", "PodDisruptionBudget", "Service"} <= kinds


@pytest.mark.parametrize(
    ("step", "answered"),
    [(step, answered) for step, _, answered in CASES],
    ids=[f"{number}-{answered['kind']}" for number, (_, _, answered) in enumerate(CASES)],
)
def test_the_answer_has_all_sent_fields_and_upstreams_defaults(step, answered):
    """No field of the object is lost, and the defaults are those of upstream."""
    status, found = repeat_request(step)
    assert status == 201, found
    assert plain(without_ports(found)) == plain(without_ports(answered))
