"""Validation of pod updates."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD

FIXED = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions"
    " to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it "
    "was previously negative)"
)
TOLERATION = {"key": "a", "operator": "Exists"}
GATED = {"schedulingGates": [{"name": "g"}, {"name": "h"}], "nodeSelector": {"a": "b"}}


# The tolerations that admission adds to every pod.
ADMITTED = [
    {
        "key": f"node.kubernetes.io/{key}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for key in ("not-ready", "unreachable")
]


@pytest.fixture
def patched(store, pod, now):
    """Patches pod default/a with `spec`; returns the pod, or the refusal as text."""

    def act(patch, **spec):
        store.create(pod(**spec), now)
        try:
            return store.patch(POD, "default", "a", {"spec": patch}, now)
        except ApiError as refusal:
            return refusal.message.removeprefix('Pod "a" is invalid: ')

    return act


@pytest.mark.parametrize(
    ("spec", "patch"),
    [
        ({}, {"containers": [{"name": "c", "image": "other"}]}),
        ({}, {"activeDeadlineSeconds": 9}),
        ({"activeDeadlineSeconds": 9}, {"activeDeadlineSeconds": 3}),
        ({}, {"tolerations": [TOLERATION, *ADMITTED]}),
        (
            {"tolerations": [{**TOLERATION, "effect": "NoExecute", "tolerationSeconds": 3}]},
            {
                "tolerations": [
                    {**TOLERATION, "effect": "NoExecute", "tolerationSeconds": 9},
                    *ADMITTED,
                ]
            },
        ),
        (GATED, {"schedulingGates": [{"name": "h"}]}),
        (GATED, {"schedulingGates": None}),
        (GATED, {"nodeSelector": {"c": "d"}}),
        (GATED, {"affinity": {"nodeAffinity": {}}}),
    ],
    ids=[
        "an image",
        "a deadline",
        "a nearer deadline",
        "another toleration",
        "the duration of a toleration",
        "a removed gate",
        "all gates removed",
        "the node selector of a gated pod",
        "the affinity of a gated pod",
    ],
)
def test_an_allowed_change_is_accepted(patched, spec, patch):
    assert patched(patch, **spec)["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("spec", "patch", "words"),
    [
        ({}, {"nodeName": "n"}, FIXED),
        ({}, {"priority": 5}, FIXED),
        ({}, {"nodeSelector": {"a": "b"}}, FIXED),
        ({}, {"containers": [{"name": "d", "image": "i"}]}, FIXED),
        (
            {},
            {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
            FIXED,
        ),
        ({}, {"terminationGracePeriodSeconds": 1}, FIXED),
        (
            {},
            {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]},
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
        (
            {"activeDeadlineSeconds": 3},
            {"activeDeadlineSeconds": 9},
            (
                "spec.activeDeadlineSeconds: Invalid value: 9: must be less than or equal to "
                "previous "
                "value"
            ),
        ),
        (
            {"tolerations": [TOLERATION]},
            {"tolerations": None},
            (
                "spec.tolerations: Forbidden: existing toleration can not be modified except its "
                "tolerationSeconds"
            ),
        ),
        (
            {},
            {"schedulingGates": [{"name": "a"}]},
            (
                "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new "
                "scheduling gate 'a'"
            ),
        ),
        (
            GATED,
            {"nodeSelector": {"a": "other"}},
            (
                'spec.nodeSelector: Invalid value: {"a":"other"}: only additions to '
                "spec.nodeSelector "
                "are allowed (no mutations or deletions)"
            ),
        ),
    ],
    ids=[
        "its node",
        "its priority",
        "its node selector",
        "a container's name",
        "a container's requests",
        "its grace period",
        "its containers' number",
        "a farther deadline",
        "a removed toleration",
        "a new gate",
        "a gated pod's node selector, but for more",
    ],
)
def test_a_forbidden_change_is_refused(patched, spec, patch, words):
    assert patched(patch, **spec).partition("\n")[0] == words


def test_a_refusal_shows_a_diff_with_context(patched):
    shown = patched({"nodeName": "n"}).partition("\n")[2]
    assert shown.endswith(
        ' "AutomountServiceAccountToken": null,\n- "NodeName": "",\n+ "NodeName": "n",\n'
        '  "SecurityContext": {\n   "HostNetwork": false,\n   "HostPID": false,\n'
    )


def affine(*terms):
    required = {"nodeSelectorTerms": list(terms)}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


HAD = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
MORE = {"matchExpressions": [*HAD["matchExpressions"], {"key": "b", "operator": "Exists"}]}


def test_the_node_affinity_of_a_gated_pod_can_be_narrowed(patched):
    pod = patched(affine(MORE), **GATED, **affine(HAD))
    assert pod["spec"]["affinity"] == affine(MORE)["affinity"]


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ((HAD, HAD), "no additions/deletions to non-empty NodeSelectorTerms list are allowed"),
        (
            ({"matchExpressions": [{"key": "b", "operator": "Exists"}]},),
            "only additions are allowed (no mutations or deletions)",
        ),
    ],
    ids=["another term", "another expression"],
)
def test_the_node_affinity_of_a_gated_pod_cannot_be_changed_otherwise(patched, terms, words):
    refusal = patched(affine(*terms), **GATED, **affine(HAD))
    assert refusal.startswith("spec.affinity.nodeAffinity.required")
    assert refusal.endswith(words)
