"""Valid objects with one or two invalid details: creates and updates are accepted or refused.

Objects that are generated from nothing are rarely valid; these start from recorded requests.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.recorded import recorded_objects
from tests.fuzz.strategies import json_values, scalars
from tests.fuzz.test_requests import FORMS, MANAGER, PATCHES, check, path_of
from tests.unit.apiserver.endpoints.conftest import Api

from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.request import Request

KINDS = {(kind.api_version, kind.kind): kind for kind in ServedKinds().all_kinds()}
OBJECTS = [key for key in recorded_objects() if key in KINDS]
NOTHING = object()


@st.composite
def mutated(draw, value):
    """Strategy for `value` with one place removed, duplicated, emptied or exchanged."""
    if isinstance(value, dict) and value and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(sorted(value)))
        inner = draw(mutated(value[key]))
        rest = {name: value[name] for name in value if name != key}
        return rest if inner is NOTHING else {**rest, key: inner}
    if isinstance(value, list) and value and draw(st.integers(0, 5)):
        at = draw(st.integers(0, len(value) - 1))
        inner = draw(mutated(value[at]))
        between = draw(st.sampled_from(([], [inner], [inner, inner])))
        return [*value[:at], *(between if inner is not NOTHING else ()), *value[at + 1 :]]
    empty = [NOTHING, None, [], {}, "", 0, -1, [None], [{}], {"a": None}]
    return draw(st.sampled_from(empty) | scalars() | json_values(3))


@st.composite
def variants(draw, obj):
    """Strategy for an object similar to `obj`, with the same kind and the requested name."""
    for _ in range(draw(st.integers(0, 2))):
        changed = draw(mutated(obj))
        obj = changed if isinstance(changed, dict) else obj
    return obj


def named(obj, kind, name):
    """Return `obj` with a name, if its metadata can have one."""
    meta = obj.get("metadata")
    stated = {"apiVersion": kind.api_version, "kind": kind.kind}
    if not isinstance(meta, dict | None):
        return {**obj, **stated}
    return {**obj, **stated, "metadata": {**(meta or {}), "name": name}}


def name_of(kind):
    """Return a name that objects of the kind may have."""
    return {"CustomResourceDefinition": "widgets.golden.example.com"}.get(kind.kind, "a")


@st.composite
def stories(draw):
    """Strategy for a kind, an object to create, and later requests to it."""
    key = draw(st.sampled_from(OBJECTS))
    kind, obj = KINDS[key], recorded_objects()[key]
    parts = [part.name for part in kind.subresources if "proxy" not in part.name]
    steps = []
    for _ in range(draw(st.integers(0, 3))):
        part = draw(st.sampled_from(("", "", *parts)))
        form = draw(st.sampled_from(("PUT", "POST", *PATCHES)))
        body = named(draw(variants(obj)), kind, name_of(kind))
        if form == "json-patch+json":
            body = [{"op": "add", "path": f"/{name}", "value": body[name]} for name in body]
        steps.append((part, form, body))
    return kind, named(draw(variants(obj)), kind, name_of(kind)), steps


@pytest.mark.long
@given(stories())
def test_an_almost_valid_object_is_accepted_or_refused(story):
    kind, obj, steps = story
    api = Api()
    check(api.post(path_of(kind), json.dumps(obj)).response)
    for part, form, body in steps:
        path = path_of(kind, name_of(kind), *([part] if part else []))
        method = form if form in ("PUT", "POST") else "PATCH"
        query = MANAGER if "apply" in form else ()
        headers = {"content-type": f"application/{form}"} if method == "PATCH" else {}
        raw = json.dumps(body).encode()
        check(api.server.handle(Request(method, path, query, headers, raw), api.now))
    for accept in FORMS:
        check(api.server.handle(Request("GET", path_of(kind), (), {"accept": accept}), api.now))
    check(api.server.handle(Request("DELETE", path_of(kind, name_of(kind))), api.now))
