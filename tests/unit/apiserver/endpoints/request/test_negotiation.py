"""Negotiation of media types and views by the Accept header."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.negotiation.media_type import (
    MediaTypeOptions,
    error_media_type,
    negotiated_media_type,
)

JSON, YAML = "application/json", "application/yaml"
TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", MediaTypeOptions()),
        ("*/*", MediaTypeOptions()),
        (JSON, MediaTypeOptions()),
        (f"{YAML},{JSON}", MediaTypeOptions(YAML)),
        (f"{YAML};q=0.1,{JSON};q=0.9", MediaTypeOptions()),
        ("application/vnd.kubernetes.protobuf,application/json", MediaTypeOptions()),
        (TABLE, MediaTypeOptions(JSON, "Table", "v1")),
        (f"{JSON};as=Table;v=v9;g=meta.k8s.io,{JSON}", MediaTypeOptions()),
        ("text/html,application/xhtml+xml,*/*;q=0.8", MediaTypeOptions()),
        (f"{JSON};charset=utf-8", MediaTypeOptions()),
    ],
)
def test_the_first_clause_that_can_be_served_is_selected(accept, form):
    assert negotiated_media_type(accept) == form


@pytest.mark.parametrize(
    ("accept", "begins"),
    [
        ("text/html", "406: Not Acceptable"),
        ("application/*", "406: Not Acceptable"),
        (f"{JSON};as=Foo;v=v1;g=meta.k8s.io", "only the following media types are accepted"),
    ],
)
def test_an_unsupported_accept_header_is_refused(accept, begins):
    with pytest.raises(ApiError) as caught:
        negotiated_media_type(accept)
    assert caught.value.code == 406
    assert caught.value.message.startswith(begins)


def test_a_watch_as_yaml_is_refused():
    with pytest.raises(ApiError, match="stream=watch"):
        negotiated_media_type(YAML, streams=True)


@pytest.mark.parametrize(
    ("accept", "form"),
    [("application/*", MediaTypeOptions()), (f"text/html,{YAML}", MediaTypeOptions(YAML))],
)
def test_paths_without_a_route_accept_wildcard_media_types(accept, form):
    assert negotiated_media_type(accept, is_routed=False) == form


@pytest.mark.parametrize("accept", ["text/html", f"{JSON};v=v1"])
def test_paths_without_a_route_have_one_refusal(accept):
    with pytest.raises(ApiError, match="only the following media types are accepted"):
        negotiated_media_type(accept, is_routed=False)


def test_a_resource_without_views_refuses_tables():
    assert negotiated_media_type(f"{TABLE},{YAML}", has_views=False) == MediaTypeOptions(YAML)
    with pytest.raises(ApiError, match="only the following media types are accepted"):
        negotiated_media_type(TABLE, has_views=False)


def test_an_error_is_encoded_without_a_view():
    assert error_media_type(f"{YAML};as=Table;v=v1;g=meta.k8s.io") == JSON
    assert error_media_type(f"{TABLE},{YAML}") == YAML
