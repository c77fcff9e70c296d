"""The layout of JSON responses, as recorded from upstream 1.36.4."""

from __future__ import annotations

import pytest

from fairlead.apiserver.http.pretty_print import formatted_body
from fairlead.apiserver.request import Response

OBJECT = b'{"kind":"Status","apiVersion":"v1","metadata":{}}'
LINES = b'{\n  "kind": "Status",\n  "apiVersion": "v1",\n  "metadata": {}\n}'


@pytest.mark.parametrize(
    ("pretty", "agent", "expected"),
    [
        pytest.param("", "kubectl/v1", OBJECT + b"\n", id="programs get one line"),
        pytest.param("", "curl/8", LINES, id="curl is interactive"),
        pytest.param("", "Wget/1", LINES, id="Wget is interactive"),
        pytest.param("", "Mozilla/5.0 (X11)", LINES, id="a browser is interactive"),
        pytest.param("true", "kubectl/v1", LINES, id="pretty=true"),
        pytest.param("false", "curl/8", OBJECT + b"\n", id="pretty=false"),
        pytest.param("maybe", "curl/8", OBJECT + b"\n", id="an invalid value of pretty"),
    ],
)
def test_an_object_is_indented_for_browsers_and_on_request(pretty, agent, expected):
    parts = formatted_body(Response(200, (OBJECT,)), "/api/v1/x", pretty, {"user-agent": agent})
    assert b"".join(parts) == expected


@pytest.mark.parametrize(
    ("accept", "is_one_line"),
    [
        ("application/json", True),
        ("application/json;as=Table;g=meta.k8s.io;v=v1,application/json", True),
        ("*/*", True),
        ("application/json;as=Table;g=meta.k8s.io;v=v1", False),
        ("text/html", False),
    ],
)
def test_a_refusal_is_indented_if_objects_are_not_accepted(accept, is_one_line):
    """A client that does not accept JSON objects gets the indented form."""
    parts = formatted_body(Response(404, (OBJECT,)), "/api/v1/x", "", {"accept": accept})
    assert b"".join(parts) == (OBJECT + b"\n" if is_one_line else LINES)


def test_html_characters_are_escaped():
    """The characters are escaped anywhere in a string."""
    text = '{"kind":"A","a":"<b>&\u2028"}'.encode()
    parts = formatted_body(Response(200, (text,)), "/api/v1/x", "", {})
    assert b"".join(parts) == rb'{"kind":"A","a":"\u003cb\u003e\u0026\u2028"}' + b"\n"


def test_the_version_document_is_always_indented():
    """The document is not an API object."""
    parts = formatted_body(Response(200, (b'{"major":"1"}',)), "/version", "", {})
    assert b"".join(parts) == b'{\n  "major": "1"\n}'


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(Response(200, (b"ok",), "text/plain; charset=utf-8"), id="text"),
        pytest.param(Response(200, (b"a: b\n",), "application/yaml"), id="YAML"),
        pytest.param(Response(200, (b'{"openapi":"3.0.0"}',)), id="a document"),
        pytest.param(Response(304), id="nothing"),
    ],
)
def test_other_responses_are_not_changed(response):
    parts = formatted_body(response, "/x", "true", {"user-agent": "curl/8"})
    assert b"".join(parts) == b"".join(response.body)
