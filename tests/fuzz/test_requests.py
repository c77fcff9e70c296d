"""Whole requests without a socket: no request causes an internal server error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.strategies import json_texts, of_type, texts
from tests.fuzz.upstream import is_upstreams_own
from tests.unit.apiserver.endpoints.conftest import Api

from fairlead.apiserver.endpoints.collection.watch import Watch
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.request import Request
from fairlead.apiserver.schema.model import schema_of

KINDS = [kind for kind in ServedKinds().all_kinds() if schema_of(kind.api_version, kind.kind)]
PATCHES = ("json-patch+json", "strategic-merge-patch+json", "merge-patch+json", "apply-patch+yaml")
PARAMETERS = (
    "limit", "continue", "labelSelector", "fieldSelector", "resourceVersion",
    "resourceVersionMatch", "watch", "allowWatchBookmarks", "sendInitialEvents", "timeoutSeconds",
    "timeout", "pretty", "gracePeriodSeconds", "propagationPolicy", "orphanDependents", "dryRun",
    "fieldManager", "fieldValidation", "force", "includeObject", "container", "tailLines", "follow",
)  # fmt: skip
VALUES = (
    "0", "1", "-1", "true", "false", "All", "Strict", "Warn", "Exact", "NotOlderThan", "Orphan",
    "Foreground", "a=b", "a in (b)", "metadata.name=a", "m", "1s",
)  # fmt: skip
HEADERS = (
    "accept", "content-type", "impersonate-user", "impersonate-group", "impersonate-uid",
    "impersonate-extra-a", "user-agent",
)  # fmt: skip
FORMS = (
    "application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
    "application/json;as=Table;v=v1;g=meta.k8s.io", "*/*",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
)  # fmt: skip

MANAGER = (("fieldManager", "m"), ("force", "true"))
QUERIES = st.lists(
    st.tuples(st.sampled_from(PARAMETERS), st.sampled_from(VALUES) | texts()), max_size=3
).map(tuple)


def check(answer):
    """Check that a response is no internal error, and that a refusal is a Status."""
    if isinstance(answer, Watch):
        assert all(line.endswith(b"\n") for line in answer.pop_lines())
        answer.close()
        return
    text = b"".join(answer.body)
    if answer.status >= 400 and answer.content_type == "application/json":
        assert json.loads(text)["code"] == answer.status
    assert answer.status < 500 or is_upstreams_own(text.decode()), text


def path_of(kind, *rest):
    """Return the path of objects of `kind`."""
    within = ("namespaces", "default") if kind.namespaced else ()
    root = f"apis/{kind.group}" if kind.group else "api"
    return "/" + "/".join((root, kind.version, *within, kind.plural, *rest))


@given(
    st.sampled_from(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "x")),
    st.sampled_from(KINDS).map(path_of) | texts().map(lambda text: f"/{text}"),
    QUERIES,
    st.dictionaries(st.sampled_from(HEADERS), st.sampled_from(FORMS) | texts(), max_size=3),
    json_texts() | st.binary(max_size=20),
)
def test_every_request_is_answered(method, path, query, headers, body):
    api = Api()
    for target in (path, f"{path}/a", f"{path}/a/status"):
        check(api.server.handle(Request(method, target, query, headers, body), api.now))


@st.composite
def lives(draw):
    """Strategy for a kind, an object, and requests: method, path, query, media type and body."""
    kind = draw(st.sampled_from(KINDS))
    schema = schema_of(kind.api_version, kind.kind)
    part = draw(st.sampled_from(("", *(part.name for part in kind.subresources))))
    about = path_of(kind, "a", *([part] if part else []))
    steps = []
    for _ in range(draw(st.integers(1, 3))):
        obj = draw(of_type(schema))
        method = draw(st.sampled_from(("PUT", "PATCH", "PATCH", "GET", "DELETE", "POST")))
        form = draw(st.sampled_from(PATCHES)) if method == "PATCH" else "json"
        if form == "json-patch+json" and isinstance(obj, dict):
            obj = [{"op": "add", "path": f"/{key}", "value": obj[key]} for key in obj]
        elif isinstance(obj, dict) and draw(st.integers(0, 9)):
            obj = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        steps.append((method, about, draw(QUERIES), f"application/{form}", obj))
    return kind, draw(of_type(schema)), steps


@pytest.mark.long
@given(lives())
def test_random_requests_to_an_object_cause_no_server_error(life):
    """It is created if possible, changed at random, and then read, listed and shown as a table."""
    kind, obj, steps = life
    api = Api()
    if isinstance(obj, dict):
        meta = obj.get("metadata")
        meta = {**meta, "name": "a"} if isinstance(meta, dict) else {"name": "a"}
        for key in ("namespace", "uid", "resourceVersion", "deletionTimestamp"):
            meta.pop(key, None)
        obj = {**obj, "metadata": meta}
    check(api.post(path_of(kind), json.dumps(obj)).response)
    for method, path, query, form, body in steps:
        raw, manager = json.dumps(body).encode(), MANAGER if "apply" in form else ()
        headers = {"content-type": form}
        check(api.server.handle(Request(method, path, (*manager, *query), headers, raw), api.now))
    for accept in FORMS:
        for path in (path_of(kind), path_of(kind, "a")):
            check(api.server.handle(Request("GET", path, headers={"accept": accept}), api.now))
