"""The kinds of a changed definition are released."""

from __future__ import annotations

import sys

from fairlead.apiserver.apiextensions.served_kind import kinds_of
from fairlead.apiserver.endpoints.field_manager import tracking_of
from fairlead.apiserver.endpoints.request.typed_object import zero_object
from fairlead.apiserver.endpoints.response.encoded_objects import preamble, rest_of_text

DEFINITION = {
    "metadata": {"name": "ws.e.com"},
    "spec": {
        "group": "e.com",
        "scope": "Namespaced",
        "names": {"plural": "ws", "singular": "w", "kind": "W", "listKind": "WList"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
    "status": {"acceptedNames": {"plural": "ws", "kind": "W", "listKind": "WList"}},
}


def test_caches_by_kind_do_not_keep_custom_kinds_alive():
    (kind,) = kinds_of(DEFINITION)
    before = sys.getrefcount(kind)
    assert preamble(kind) == b'{"apiVersion":"e.com/v1","kind":"W",'
    assert rest_of_text(kind, b'{"apiVersion":"e.com/v1","kind":"W","a":1}') == b'"a":1}'
    assert zero_object(kind) == {}
    assert tracking_of(kind, "status") is not None
    assert sys.getrefcount(kind) == before
