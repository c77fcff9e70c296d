"""DeleteOptions in the body, as recorded from upstream 1.36.4."""

from __future__ import annotations

import pytest

CONFIG_MAP = "/api/v1/namespaces/default/configmaps/a"
NO_MATCH = "json: cannot unmarshal string into Go struct field DeleteOptions"
SCHEME = '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"'


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"gracePeriodSeconds": "1"}, f"{NO_MATCH}.gracePeriodSeconds of type int64"),
        ({"preconditions": "x"}, f"{NO_MATCH}.preconditions of type v1.Preconditions"),
        ({"dryRun": "All"}, f"{NO_MATCH}.dryRun of type []string"),
        (
            {"propagationPolicy": 1},
            (
                "json: cannot unmarshal number into Go struct field DeleteOptions."
                "propagationPolicy of type v1.DeletionPropagation"
            ),
        ),
        (
            {"Kind": 'a"b'},
            rf'no kind "a\"b" is registered for version "meta.k8s.io/v1" in scheme {SCHEME}',
        ),
        ({"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c"),
        ("\n", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
    ],
)
def test_malformed_options_are_refused(api, body, problem):
    api.config_map("a")
    answer = api.delete(CONFIG_MAP, body)
    assert (answer.status, answer.message) == (400, problem)


def test_all_errors_are_reported(api):
    api.config_map("a")
    answer = api.delete(CONFIG_MAP, {"orphanDependents": True, "propagationPolicy": "x"})
    assert (answer.status, answer.message) == (
        422,
        (
            'DeleteOptions.meta.k8s.io "" is invalid: [propagationPolicy: Invalid value: "x": '
            "orphanDependents and deletionPropagation cannot be both set, propagationPolicy: "
            'Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil"]'
        ),
    )


@pytest.mark.parametrize("version", ["v1", "x/v1", "policy/v1", "meta.k8s.io/v1"])
def test_options_of_any_api_version_are_accepted(api, version):
    api.config_map("a")
    body = {"apiVersion": version, "kind": "DeleteOptions", "bogus": 1}
    assert api.delete(CONFIG_MAP, body).status == 200
