"""Which form an Accept header leads to."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.negotiation.media_type import Form, error_media_type, negotiated

JSON, YAML = "application/json", "application/yaml"
TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Form()),
        ("*/*", Form()),
        (JSON, Form()),
        (f"{YAML},{JSON}", Form(YAML)),
        (f"{YAML};q=0.1,{JSON};q=0.9", Form()),
        ("application/vnd.kubernetes.protobuf,application/json", Form()),
        (TABLE, Form(JSON, "Table", "v1")),
        (f"{JSON};as=Table;v=v9;g=meta.k8s.io,{JSON}", Form()),
        ("text/html,application/xhtml+xml,*/*;q=0.8", Form()),
        (f"{JSON};charset=utf-8", Form()),
    ],
)
def test_the_first_clause_that_can_be_served_wins(accept, form):
    assert negotiated(accept) == form


@pytest.mark.parametrize(
    ("accept", "begins"),
    [
        ("text/html", "406: Not Acceptable"),
        ("application/*", "406: Not Acceptable"),
        (f"{JSON};as=Foo;v=v1;g=meta.k8s.io", "only the following media types are accepted"),
    ],
)
def test_what_cannot_be_served_is_refused(accept, begins):
    with pytest.raises(ApiError) as caught:
        negotiated(accept)
    assert caught.value.code == 406
    assert caught.value.message.startswith(begins)


def test_a_watch_is_never_yaml():
    with pytest.raises(ApiError, match="stream=watch"):
        negotiated(YAML, streams=True)


@pytest.mark.parametrize(
    ("accept", "form"),
    [("application/*", Form()), (f"text/html,{YAML}", Form(YAML))],
)
def test_where_no_route_leads_types_may_be_open(accept, form):
    assert negotiated(accept, is_routed=False) == form


@pytest.mark.parametrize("accept", ["text/html", f"{JSON};v=v1"])
def test_where_no_route_leads_there_is_one_refusal(accept):
    with pytest.raises(ApiError, match="only the following media types are accepted"):
        negotiated(accept, is_routed=False)


def test_what_has_no_views_is_not_shown_as_one():
    assert negotiated(f"{TABLE},{YAML}", has_views=False) == Form(YAML)
    with pytest.raises(ApiError, match="only the following media types are accepted"):
        negotiated(TABLE, has_views=False)


def test_a_refusal_is_told_as_by_a_clause_without_a_view():
    assert error_media_type(f"{YAML};as=Table;v=v1;g=meta.k8s.io") == JSON
    assert error_media_type(f"{TABLE},{YAML}") == YAML
