"""Which form an Accept header leads to."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.serving.negotiation import Form, negotiated

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
