"""Rules for requests of all kinds, as recorded from upstream 1.36.4."""

from __future__ import annotations

import pytest

from fairlead.apiserver.endpoints.collection.watch import Watch

MAPS = "/api/v1/namespaces/n/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/n/leases"
MERGE = "application/merge-patch+json"


@pytest.fixture
def filled(api):
    """A namespace with one object."""
    api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    api.ask("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    return api


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (".", "\".\": may not be '.'"),
        ("..", "\"..\": may not be '..'"),
        ("a%b", "\"a%b\": may not contain '%'"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_invalid_names_in_the_path_are_refused(filled, method, name, why):
    """A path must be able to say them."""
    answer = filled.ask(method, f"{MAPS}/{name}")
    assert (answer.status, answer.message) == (400, f"Name parameter invalid: {why}")


def test_names_in_messages_are_quoted_as_in_go(filled):
    """What is not printable is escaped, once more than JSON does it."""
    assert filled.ask("GET", f"{MAPS}/a\n").message == 'configmaps "a\\n" not found'
    assert filled.ask("GET", f'{MAPS}/"').message == 'configmaps "\\"" not found'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1", 'missing unit in duration "1"'),
        ("1m1", 'missing unit in duration "1m1"'),
        ("1d", 'unknown unit "d" in duration "1d"'),
        ("abc", 'invalid duration "abc"'),
        ("-", 'invalid duration "-"'),
        ("1h.", 'invalid duration "1h."'),
    ],
)
def test_an_invalid_timeout_is_refused(filled, text, why):
    """In the words of Go's reader of durations."""
    answer = filled.ask("GET", f"{MAPS}?timeout={text}")
    wanted = f"invalid timeout specified in the request URL - time: {why}"
    assert (answer.status, answer.message) == (400, wanted)


def test_the_export_parameter_is_refused(filled):
    """An old parameter of a GET is refused by name."""
    answer = filled.ask("GET", f"{MAPS}/a?export=true")
    why = "the export parameter, deprecated since v1.14, is no longer supported"
    assert (answer.status, answer.message) == (400, why)
    assert filled.ask("GET", f"{MAPS}/a?export=false").status == 200


@pytest.mark.parametrize("word", ["watch", "proxy"])
def test_a_watch_or_proxy_path_without_a_resource_is_an_internal_error(filled, word):
    """It is an error of the server, as plain text."""
    answer = filled.ask("GET", f"/api/v1/{word}")
    text = f'Internal Server Error: "/api/v1/{word}": failed to create RequestInfo: '
    text += f"unable to determine kind and namespace from url, /api/v1/{word}\n"
    assert (answer.status, answer.text) == (500, text)


@pytest.mark.parametrize("path", ["*", "//api", "/nope"])
def test_unknown_paths_return_404(filled, path):
    """The asterisk that asks about the server as a whole is one of them."""
    assert filled.ask("GET", path).text == "404 page not found\n"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"uid": ""}, "the UID in the precondition () does not match"),
        ({"resourceVersion": ""}, "the ResourceVersion in the precondition () does not match"),
    ],
)
def test_an_empty_precondition_is_not_ignored(filled, options, why):
    """No object has an empty uid or version."""
    answer = filled.ask("DELETE", f"{MAPS}/a", {"preconditions": options})
    assert answer.status == 409
    assert why in answer.message


def test_preconditions_in_the_query_of_a_deletion_are_checked(filled):
    """Options in the query, without a body; also of a collection, which they select, too."""
    assert filled.ask("DELETE", f"{MAPS}/a?resourceVersion=1").status == 409
    assert filled.ask("DELETE", f"{MAPS}?resourceVersion=0").status == 409
    past = filled.ask("DELETE", f"{MAPS}?resourceVersion=1")
    assert (past.status, past.json["items"]) == (200, [])
    assert past.json["metadata"]["resourceVersion"] == "1"
    assert filled.ask("GET", f"{MAPS}/a").status == 200


@pytest.mark.parametrize(
    ("text", "why"),
    [("abc", "invalid syntax"), (str(1 << 64), "value out of range")],
)
def test_an_invalid_resource_version_in_a_write_is_refused(filled, text, why):
    """PUT and PATCH get the parser's error."""
    said = f'strconv.ParseUint: parsing "{text}": {why}'
    obj = {"metadata": {"name": "a", "resourceVersion": text}}
    for answer in (
        filled.ask("PUT", f"{MAPS}/a", obj),
        filled.ask("PATCH", f"{MAPS}/a", {"metadata": obj["metadata"]}, content_type=MERGE),
    ):
        assert (answer.status, answer.message) == (500, said)


def test_leading_zeros_of_a_resource_version_are_ignored(filled):
    """However many zeros stand before it."""
    obj = filled.ask("GET", f"{MAPS}/a").json
    obj["metadata"]["resourceVersion"] = "00" + obj["metadata"]["resourceVersion"]
    assert filled.ask("PUT", f"{MAPS}/a", obj).status == 200


def test_an_update_with_a_uid_cannot_create_an_object(filled):
    """What is not there has none."""
    lease = {"metadata": {"name": "l", "uid": "u"}, "spec": {}}
    answer = filled.ask("PUT", f"{LEASES}/l", lease)
    assert answer.status == 409
    assert "Key: /registry/leases/n/l" in answer.message
    assert answer.message.endswith("UID in precondition: u, UID in object meta: ")


def test_the_deletion_fields_of_a_new_object_are_dropped(filled):
    """The deletion fields are dropped before managed fields are computed."""
    meta = {"name": "b", "deletionGracePeriodSeconds": 5}
    created = filled.ask("POST", MAPS, {"metadata": meta}).json["metadata"]
    assert "managedFields" not in created
    assert "deletionGracePeriodSeconds" not in created


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (",", 406),
        ("APPLICATION/JSON", 406),
        ("application/json;as=", 200),
        ("application/json;as", 200),
    ],
)
def test_special_accept_headers(filled, accept, status):
    """Routes know media types by their letters; a view without a name is none."""
    assert filled.ask("GET", f"{MAPS}/a", accept=accept).status == status


def test_a_watch_with_yaml_first_in_the_accept_header_is_refused(filled):
    """YAML cannot be streamed, whatever else the client would take."""
    answer = filled.ask("GET", f"{MAPS}?watch=1", accept="application/yaml,application/json")
    assert answer.status == 406
    assert ";stream=watch" in answer.text


def test_a_deprecated_watch_path_refuses_another_name_in_the_field_selector(filled):
    """A selector may say the same name, and no other."""
    url = "/api/v1/watch/namespaces/n/configmaps/a?fieldSelector=metadata.name%3D"
    answer = filled.ask("GET", f"{url}b")
    why = "fieldSelector metadata.name doesn't match requested name"
    assert (answer.status, answer.message) == (400, why)
    assert isinstance(filled.ask("GET", f"{url}a"), Watch)


def test_a_watch_list_from_a_future_version_ends_with_an_error(filled):
    """It begins with why it ends."""
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    watch = filled.ask("GET", f"{MAPS}?{query}&resourceVersion=99000000")
    (line,) = watch.pop_lines()
    assert b'"type":"ERROR"' in line
    assert b"Too large resource version: 99000000" in line
