"""One recorded request, as a replay sends it."""

from __future__ import annotations

import base64

from fairlead.apiserver.protobuf.wire import bytes_field
from fairlead.conformance.api.exchange import Exchange
from fairlead.conformance.api.placeholder import PlaceholderValues


def test_the_path_of_a_protobuf_request_has_the_names_in_its_body():
    """The body is sent as it was recorded, so the path must have the recorded names."""
    body = b"k8s\0" + bytes_field(2, bytes_field(1, b"web-7d9f8c6b5-x2x4z"))
    request = {
        "method": "POST",
        "path": "/api/v1/namespaces/default/pods/web-<hash:1>-<gen:1>/binding",
        "query": [],
        "headers": {},
        "body": {"$protobuf": {"b64": base64.b64encode(body).decode()}},
    }
    asking = Exchange({"request": request, "response": {}}).request(PlaceholderValues(), "admin")
    assert asking.path == "/api/v1/namespaces/default/pods/web-7d9f8c6b5-x2x4z/binding"
    assert asking.body == body
