"""Simple JSON paths, and paths that are refused."""

from __future__ import annotations

import pytest

from fairlead.apiserver.apiextensions.json_path import JsonPathError, json_path, plain_path

OBJ = {
    "spec": {"size": 3, "a.b": "dotted", "list": [1, 2, 3]},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "n": 1},
            {"type": "Other", "status": "False", "n": 2},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.size", [3]),
        (".spec.nope", []),
        (".spec.size.deeper", []),
        (".spec.a\\.b", ["dotted"]),
        (".spec['a.b']", ["dotted"]),
        (".spec.list[0]", [1]),
        (".spec.list[-1]", [3]),
        (".spec.list[7]", []),
        (".spec.list[*]", [1, 2, 3]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Other')].n", [2]),
        (".status.conditions[?(@.type!='Other')].n", [1]),
        (".status.conditions[?(@.n==2)].type", ["Other"]),
        (".", [OBJ]),
    ],
)
def test_a_path_finds_values(path, expected):
    assert json_path(path).find(OBJ) == expected


@pytest.mark.parametrize("path", ["", "spec", "x[", ".spec[", ".a..b", ".a[?(@.b)]", "{.a}"])
def test_a_path_that_is_not_simple_is_refused(path):
    with pytest.raises(JsonPathError, match="must be a simple json path starting with"):
        json_path(path)


def test_a_path_of_names_has_these_names():
    assert json_path(".spec.replicas").names == ("spec", "replicas")
    assert json_path(".spec.list[0]").names is None


def test_a_plain_path_is_split_at_dots():
    """Like upstream, the path is split at every dot, and the names are not parsed."""
    found = plain_path(".spec.a[")
    assert found.names == ("spec", "a[")
    assert found.find({"spec": {"a[": 3}}) == [3]
