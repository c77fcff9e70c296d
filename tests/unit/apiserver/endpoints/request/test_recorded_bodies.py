"""Decoding of valid and invalid bodies, recorded from upstream 1.36.4.

A line has a body, its media type, the expected kind and the fieldValidation; and the result: the
decoded object without defaults and the warnings, or the refusal.
"""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pytest

from fairlead.apiserver.endpoints.request.body import decoded, parsed_yaml
from fairlead.apiserver.endpoints.request.body_type import require_type
from fairlead.apiserver.endpoints.request.typed_object import typed
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.registry.served_kinds import BUILT_IN

RECORDED = gzip.decompress(Path(__file__).with_name("recorded_bodies.jsonl.gz").read_bytes())
ROWS = [json.loads(line) for line in RECORDED.splitlines()]
KINDS = {(kind.api_version, kind.kind): kind for kind in BUILT_IN}
PARTS = 8


def outcome(row):
    """Return the result of decoding a body, in the format of the recording."""
    kind = KINDS[row["apiVersion"], row["kind"]]
    body = row["body"].encode() if "body" in row else base64.b64decode(row["base64"])
    try:
        obj = decoded(body, row["type"], kind.kind)
        repeats = parsed_yaml(body)[1] if row["type"].endswith("yaml") else []
        made, warnings = typed(kind, require_type(obj, kind, body), row["validation"], repeats)
    except ApiError as refusal:
        return {"refusal": refusal.message}
    return {"object": made} | ({"warnings": list(warnings)} if warnings else {})


@pytest.mark.parametrize("part", range(PARTS))
def test_a_body_is_decoded_or_refused_as_upstream_does(part):
    for row in ROWS[part::PARTS]:
        expected = {key: row[key] for key in ("refusal", "object", "warnings") if key in row}
        assert outcome(row) == expected, row


def test_bodies_of_many_kinds_are_recorded():
    assert len(ROWS) >= 300
    assert len({row["kind"] for row in ROWS}) >= 40
