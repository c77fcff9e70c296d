"""Hooks of Schemathesis: existing names, watches that end, and errors that the spec lacks.

The Schemathesis command line loads the hooks (see `tests/fuzz/openapi.py`).
"""

from __future__ import annotations

import json
from typing import Any
from zlib import crc32

import schemathesis
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
)
from tests.fuzz.upstream import is_upstreams_own

NAMES = ("a", "b")
OWN = ("namespace", "uid", "resourceVersion", "selfLink", "deletionTimestamp")
# Webhooks without a server would refuse everything else.
OUTSIDE = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService")


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Direct three of four requests to objects that may exist, and limit the time of watches."""
    chance = crc32(repr((case.path_parameters, case.query, case.method)).encode())
    if chance % 4 and isinstance(case.path_parameters, dict):
        likely = {"namespace": "default", "name": NAMES[chance % 2]}
        known = {key: likely.get(key, value) for key, value in case.path_parameters.items()}
        case.path_parameters = known
    if chance % 4 and isinstance(case.body, dict):
        case.body = _named(case.body, NAMES[chance % 3 % 2], case.path)
    query = case.query if isinstance(case.query, dict) else {}
    if "watch" in query or "/watch/" in case.path:
        case.query = {**query, "timeoutSeconds": "1", "watch": "0" if chance % 16 else "1"}
    if case.method == "PATCH" and chance % 2 and "apply" in str(case.media_type):
        case.query = {**query, "fieldManager": "m", "force": "true"}


def _named(body: dict[str, Any], name: str, path: str) -> dict[str, Any]:
    meta = body.get("metadata")
    meta = {key: meta[key] for key in meta if key not in OWN} if isinstance(meta, dict) else {}
    body = {key: body[key] for key in body if key not in ("apiVersion", "kind")}
    if path.rpartition("/")[2].lower().startswith(tuple(kind.lower()[:20] for kind in OUTSIDE)):
        body.pop("webhooks", None)
    return {**body, "metadata": {**meta, "name": name}}


@schemathesis.check
def no_failure_of_its_own(context: Any, response: Any, case: Any) -> None:
    """Check that 5xx occurs only where upstream has it, and that each refusal is a Status."""
    if response.status_code < 400:
        return
    text = response.content.decode(errors="replace")
    assert response.status_code < 500 or is_upstreams_own(text), text
    if "json" in str(response.headers.get("content-type", "")):
        said = json.loads(text)
        assert (said["kind"], said["code"]) == ("Status", response.status_code), text


@schemathesis.check
def as_documented(context: Any, response: Any, case: Any) -> None:
    """Check that a response has the documented media type and form; watches are streams."""
    if "watch" in (case.query or {}) or _is_held(case, response):
        return
    if not case.path.endswith("/log"):
        content_type_conformance(context, response, case)
    try:
        response_schema_conformance(context, response, case)
    except (Failure, FailureGroup) as found:
        failures = [one for one in getattr(found, "exceptions", (found,)) if not _is_null(one)]
        if failures:
            raise failures[0] from None


def _is_held(case: Any, response: Any) -> bool:
    """Return whether the response is a terminating object; upstream documents a Status there."""
    return case.method == "DELETE" and b'"deletionTimestamp":' in response.content


def _is_null(failure: Any) -> bool:
    """Return whether the failure is about null, which Go writes for documented lists."""
    return getattr(failure, "instance", failure) is None
