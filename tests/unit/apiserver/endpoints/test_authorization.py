"""The attributes that requests are authorized by."""

from __future__ import annotations

import pytest

from fairlead.apiserver.endpoints.compose import complete_server

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def authorized(api):
    """The attributes that the authorizer receives; it allows every request."""
    found = []
    api.server = complete_server(
        api.store,
        clock=lambda: api.now,
        address="127.0.0.1:6443",
        version="0",
        authorize=found.append,
    )
    return found


@pytest.mark.parametrize(
    ("method", "url", "verb", "namespace", "name"),
    [
        ("GET", f"{MAPS}?fieldSelector=metadata.name=a", "list", "default", "a"),
        ("GET", f"{MAPS}?fieldSelector=metadata.name==a&watch=1", "watch", "default", "a"),
        (
            "GET",
            f"{MAPS}?fieldSelector=metadata.namespace=x,metadata.name=a",
            "list",
            "default",
            "a",
        ),
        ("GET", f"{MAPS}?fieldSelector=metadata.name!=a", "list", "default", ""),
        ("GET", f"{MAPS}?fieldSelector=metadata.name=a/b", "list", "default", ""),
        ("GET", f"{MAPS}?fieldSelector=nonsense", "list", "default", ""),
        ("DELETE", f"{MAPS}?fieldSelector=metadata.name=a", "deletecollection", "default", ""),
        ("GET", f"{MAPS}/a?watch=1", "get", "default", "a"),
        ("GET", "/api/v1/namespaces?fieldSelector=metadata.name=a", "list", "", "a"),
        ("GET", "/api/v1/namespaces/a", "get", "a", "a"),
        ("GET", f"{MAPS.replace('v1', 'v1/watch')}/a", "watch", "default", "a"),
    ],
)
def test_a_list_with_a_name_selector_is_authorized_with_the_name(  # noqa: PLR0917
    api, authorized, method, url, verb, namespace, name
):
    """A role with resourceNames can thus allow a watch of a single object."""
    api.ask(method, url)
    (attributes,) = authorized
    assert (attributes.verb, attributes.namespace, attributes.name) == (verb, namespace, name)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD"])
def test_other_methods_on_watch_paths_require_the_verb_watch_and_are_refused(
    api, authorized, method
):
    """The request is authorized with the verb watch, and then refused with 405."""
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    api.post(MAPS, made)
    authorized.clear()
    for url in (MAPS, f"{MAPS}/a"):
        answer = api.ask(method, url.replace("v1", "v1/watch"), made)
        assert answer.status == 405
    assert [one.verb for one in authorized] == ["watch", "watch"]
    assert [item["metadata"]["name"] for item in api.get(MAPS).json["items"]] == ["a"]
