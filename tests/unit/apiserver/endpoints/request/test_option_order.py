"""The order of errors in request options, as recorded from upstream 1.36.4."""

from __future__ import annotations

import pytest

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
APPLY = "application/apply-patch+yaml"
NO_DRY_RUN = 'dryRun: Unsupported value: ["x"]: supported values: "All"'
NO_VALIDATION = (
    'fieldValidation: Unsupported value: "x": supported values: "", "Ignore", "Strict", "Warn"'
)


def message(kind, *causes):
    return f'{kind}Options.meta.k8s.io "" is invalid: [{", ".join(causes)}]'


def test_errors_in_options_of_writes_are_reported_in_order(api):
    answer = api.post(f"{CONFIG_MAPS}?fieldValidation=x&dryRun=x&fieldManager=a%0A%E2%80%8B", {})
    where = 'fieldManager: Invalid value: "a\\n\\u200b": invalid character'
    assert (answer.status, answer.message) == (
        422,
        message(
            "Create",
            f"{where} U+000A (at position 1)",
            f"{where} U+200B (at position 2)",
            NO_DRY_RUN,
            NO_VALIDATION,
        ),
    )


def test_options_of_patches_are_validated_by_patch_type(api):
    url = f"{CONFIG_MAPS}/a?force=true&dryRun=x"
    assert api.patch(url, "{}").message == message(
        "Patch", "force: Forbidden: may not be specified for non-apply patch", NO_DRY_RUN
    )
    assert api.patch(url, "{}", APPLY).message == message(
        "Patch", "fieldManager: Required value: is required for apply patch", NO_DRY_RUN
    )


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (
            "fieldSelector=a&labelSelector=!",
            "unable to parse requirement: found '', expected: identifier",
        ),
        ("sendInitialEvents=1&fieldSelector=a", "invalid selector: 'a'; can't understand 'a'"),
        ("limit=x&timeoutSeconds=y", 'strconv.ParseInt: parsing "y": invalid syntax'),
        ("limit=x&fieldSelector=a", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("fieldSelector=y,x", "invalid selector: 'y,x'; can't understand 'x'"),
    ],
)
def test_the_option_that_is_parsed_first_is_reported(api, query, problem):
    answer = api.get(f"{CONFIG_MAPS}?{query}")
    assert (answer.status, answer.message) == (400, problem)


@pytest.mark.parametrize(
    ("agent", "manager"),
    [
        ("kubectl/v1.36.4 (linux)", "kubectl"),
        ("a\tb\x01c/1", "abc"),
        ("é" * 65, "é" * 64),
        ("x" * 127 + "é", "x" * 127),
    ],
)
def test_the_default_field_manager_is_the_user_agent(api, agent, manager):
    """upstream: apiserver/pkg/endpoints/handlers/create.go:prefixFromUserAgent"""
    made = api.post(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"a": "b"}}, user_agent=agent)
    assert made.json["metadata"]["managedFields"][0]["manager"] == manager
