"""Rules for requests of all kinds, as recorded from upstream 1.36.4."""

from __future__ import annotations

import pytest

from fairlead.apiserver.endpoints.collection.watch import Watch

MAPS = "/api/v1/namespaces/n/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/n/leases"
MERGE = "application/merge-patch+json"


@pytest.fixture
def filled(api):
    """A server with a namespace that contains one ConfigMap."""
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
    """A name that cannot be a path segment is refused."""
    answer = filled.ask(method, f"{MAPS}/{name}")
    assert (answer.status, answer.message) == (400, f"Name parameter invalid: {why}")


def test_names_in_messages_are_quoted_as_in_go(filled):
    """Go escapes non-printable characters, and JSON escapes the result again."""
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
    """The message is that of Go's time.ParseDuration."""
    answer = filled.ask("GET", f"{MAPS}?timeout={text}")
    wanted = f"invalid timeout specified in the request URL - time: {why}"
    assert (answer.status, answer.message) == (400, wanted)


def test_the_export_parameter_is_refused(filled):
    """The removed query parameter `export` has its own refusal."""
    answer = filled.ask("GET", f"{MAPS}/a?export=true")
    why = "the export parameter, deprecated since v1.14, is no longer supported"
    assert (answer.status, answer.message) == (400, why)
    assert filled.ask("GET", f"{MAPS}/a?export=false").status == 200


@pytest.mark.parametrize("word", ["watch", "proxy"])
def test_a_watch_or_proxy_path_without_a_resource_is_an_internal_error(filled, word):
    """The response is 500 with plain text."""
    answer = filled.ask("GET", f"/api/v1/{word}")
    text = f'Internal Server Error: "/api/v1/{word}": failed to create RequestInfo: '
    text += f"unable to determine kind and namespace from url, /api/v1/{word}\n"
    assert (answer.status, answer.text) == (500, text)


@pytest.mark.parametrize("path", ["*", "//api", "/nope"])
def test_unknown_paths_return_404(filled, path):
    """This includes the path `*`, which means the server as a whole."""
    assert filled.ask("GET", path).text == "404 page not found\n"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"uid": ""}, "the UID in the precondition () does not match"),
        ({"resourceVersion": ""}, "the ResourceVersion in the precondition () does not match"),
    ],
)
def test_an_empty_precondition_is_not_ignored(filled, options, why):
    """An empty uid or resourceVersion never matches."""
    answer = filled.ask("DELETE", f"{MAPS}/a", {"preconditions": options})
    assert answer.status == 409
    assert why in answer.message


def test_preconditions_in_the_query_of_a_deletion_are_checked(filled):
    """Options in the query count if there is no body, also for deletecollection."""
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
    """The message of a PUT or PATCH contains the parser's error."""
    said = f'strconv.ParseUint: parsing "{text}": {why}'
    obj = {"metadata": {"name": "a", "resourceVersion": text}}
    for answer in (
        filled.ask("PUT", f"{MAPS}/a", obj),
        filled.ask("PATCH", f"{MAPS}/a", {"metadata": obj["metadata"]}, content_type=MERGE),
    ):
        assert (answer.status, answer.message) == (500, said)


def test_leading_zeros_of_a_resource_version_are_ignored(filled):
    """The number of zeros does not matter."""
    obj = filled.ask("GET", f"{MAPS}/a").json
    obj["metadata"]["resourceVersion"] = "00" + obj["metadata"]["resourceVersion"]
    assert filled.ask("PUT", f"{MAPS}/a", obj).status == 200


def test_an_update_with_a_uid_cannot_create_an_object(filled):
    """An object that does not exist has no uid."""
    lease = {"metadata": {"name": "l", "uid": "u"}, "spec": {}}
    answer = filled.ask("PUT", f"{LEASES}/l", lease)
    assert answer.status == 409
    assert "Key: /registry/leases/n/l" in answer.message
    assert answer.message.endswith("UID in precondition: u, UID in object meta: ")


def test_the_deletion_fields_of_a_new_object_are_dropped(filled):
    """The fields are dropped before managed fields are computed."""
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
    """Media types are compared by their text; an empty view is ignored."""
    assert filled.ask("GET", f"{MAPS}/a", accept=accept).status == status


def test_a_watch_with_yaml_first_in_the_accept_header_is_refused(filled):
    """YAML cannot be streamed, even if the client also accepts JSON."""
    answer = filled.ask("GET", f"{MAPS}?watch=1", accept="application/yaml,application/json")
    assert answer.status == 406
    assert ";stream=watch" in answer.text


def test_a_deprecated_watch_path_refuses_another_name_in_the_field_selector(filled):
    """The field selector may contain only the name in the path."""
    url = "/api/v1/watch/namespaces/n/configmaps/a?fieldSelector=metadata.name%3D"
    answer = filled.ask("GET", f"{url}b")
    why = "fieldSelector metadata.name doesn't match requested name"
    assert (answer.status, answer.message) == (400, why)
    assert isinstance(filled.ask("GET", f"{url}a"), Watch)


def test_a_watch_list_from_a_future_version_ends_with_an_error(filled):
    """The first event is the error."""
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    watch = filled.ask("GET", f"{MAPS}?{query}&resourceVersion=99000000")
    (line,) = watch.pop_lines()
    assert b'"type":"ERROR"' in line
    assert b"Too large resource version: 99000000" in line
