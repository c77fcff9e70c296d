"""Options of lists, and pagination, as recorded from upstream 1.36.4."""

from __future__ import annotations

import base64
import json

import pytest

MAPS = "/api/v1/namespaces/n/configmaps"
_INVALID = "invalid continue token: continue key is not valid: "


@pytest.fixture
def filled(api):
    """A server with seven ConfigMaps; every second one has the label odd."""
    api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    for number in range(7):
        meta = {"name": f"a{number}", "labels": {"odd": str(number % 2)}}
        api.ask("POST", MAPS, {"metadata": meta})
    return api


def token(content):
    """Return a continue token with this content."""
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read(continue_token):
    """Return the content of a continue token."""
    padded = continue_token + "=" * (-len(continue_token) % 4)
    return json.loads(base64.urlsafe_b64decode(padded))


def at(api, start, **more):
    """Return a continue token for the newest version that starts at `start`."""
    return token({"v": "meta.k8s.io/v1", "rv": api.store.version, "start": start, **more})


def page(answer):
    """Return (names on a page, start key of the next page or None)."""
    meta = answer.json["metadata"]
    names = [item["metadata"]["name"] for item in answer.json["items"]]
    return names, read(meta["continue"])["start"] if meta.get("continue") else None


@pytest.mark.parametrize(
    ("written", "why"),
    [
        pytest.param("%25%25", "illegal base64 data at input byte 0", id="invalid base64"),
        pytest.param("e30=", "illegal base64 data at input byte 3", id="padded"),
        pytest.param("e30+", "illegal base64 data at input byte 3", id="standard base64 alphabet"),
        pytest.param("e3000", "illegal base64 data at input byte 4", id="one character too many"),
        pytest.param(token({}), "server does not recognize this encoded version ", id="empty"),
        pytest.param(
            token([]),
            "json: cannot unmarshal array into Go value of type storage.continueToken",
            id="a list",
        ),
        pytest.param(
            token({"v": "meta.k8s.io/v1", "rv": "x", "start": "a"}),
            "json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
            id="a version that is not a number",
        ),
        pytest.param(
            token({"v": "meta.k8s.io/v1", "start": "a"}),
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            id="no version",
        ),
        pytest.param(
            token({"v": "meta.k8s.io/v1", "rv": 5}),
            "encoded start key empty (version meta.k8s.io/v1)",
            id="no start",
        ),
        pytest.param(token({"v": "meta.k8s.io/v1", "rv": 5, "start": "../a"}), "../a", id="above"),
    ],
)
def test_an_invalid_continue_token_is_refused(filled, written, why):
    """Each invalid token is refused with its own message."""
    answer = filled.ask("GET", f"{MAPS}?limit=2&continue={written.replace('+', '%2B')}")
    assert (answer.status, answer.message) == (400, _INVALID + why)


def test_the_key_in_a_continue_token_begins_with_a_slash(filled):
    """As in upstream's cache; a token without the slash is accepted."""
    assert page(filled.ask("GET", f"{MAPS}?limit=2")) == (["a0", "a1"], "/a1\0")
    answer = filled.ask("GET", f"{MAPS}?limit=2&continue={at(filled, 'a2')}")
    assert page(answer) == (["a2", "a3"], "/a3\0")


def test_a_continue_token_of_all_namespaces_contains_the_namespace(filled):
    """The key of the next page starts with the namespace."""
    answer = filled.ask("GET", "/api/v1/configmaps?limit=1")
    assert page(answer) == (["a0"], "/n/a0\0")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("limit=2&labelSelector=odd%3D1", (["a1", "a3"], "/a3\0"), id="first page"),
        pytest.param("limit=3&labelSelector=odd%3D1", (["a1", "a3", "a5"], "/a5\0"), id="a6 left"),
        pytest.param("limit=4&labelSelector=odd%3D0", (["a0", "a2", "a4", "a6"], None), id="end"),
        pytest.param("limit=1&fieldSelector=metadata.name%3Da5", (["a5"], None), id="by name"),
        pytest.param("limit=1&resourceVersion=00", (["a0"], "/a0\0"), id="a version of zero"),
    ],
)
def test_a_page_has_a_continue_token_while_objects_remain(filled, query, expected):
    """The remaining objects need not match the selector. A list of one name has no token."""
    assert page(filled.ask("GET", f"{MAPS}?{query}")) == expected


def test_a_continued_list_at_version_0_ignores_the_limit(filled):
    """A list from version 0 has no limit in upstream."""
    answer = filled.ask("GET", f"{MAPS}?limit=2&resourceVersion=0&continue={at(filled, 'a2')}")
    assert page(answer) == (["a2", "a3", "a4", "a5", "a6"], None)


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        ("metadata.name=a\\b", "invalid escape sequence: \\b"),
        ("metadata.name=a\\", "invalid escape sequence: \\"),
        ("metadata.name=a=b", "unescaped character in value: 61"),
        ("metadata.name!==a", "unescaped character in value: 61"),
        ("metadata.name=a!=b", "unescaped character in value: 61"),
    ],
)
def test_invalid_escape_sequences_in_field_selectors_are_refused(filled, selector, why):
    """A backslash must be followed by a backslash, a comma or an equals sign."""
    query = selector.replace("\\", "%5C").replace("=", "%3D")
    answer = filled.ask("GET", f"{MAPS}?fieldSelector={query}")
    assert (answer.status, answer.message) == (400, f"invalid field selector: {why}")


@pytest.mark.parametrize("name", ["limit", "timeoutSeconds"])
def test_an_empty_number_is_refused(filled, name):
    """An empty text is not a number."""
    answer = filled.ask("GET", f"{MAPS}?{name}=")
    assert (answer.status, answer.message) == (400, 'strconv.ParseInt: parsing "": invalid syntax')


def test_a_resource_version_above_64_bits_is_refused(filled):
    """The check applies to lists and GET requests."""
    text = str(1 << 64)
    why = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": '
    listed = filled.ask("GET", f"{MAPS}?resourceVersion={text}")
    assert listed.message == f"invalid resource version: {why}value out of range"
    assert filled.ask("GET", f"{MAPS}/a0?resourceVersion={text}").status == 500
    assert filled.ask("GET", f"{MAPS}/a0?resourceVersion={(1 << 64) - 1}").status == 504


def test_a_watch_with_a_continue_token_is_refused(filled):
    """The watch starts at the current version, which a continue token contradicts."""
    answer = filled.ask("GET", f"{MAPS}?watch=1&continue={at(filled, 'a2')}")
    assert "resourceVersionMatch is forbidden when continue is provided" in answer.message
