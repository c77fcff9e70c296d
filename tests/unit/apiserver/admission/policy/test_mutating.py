"""MutatingAdmissionPolicy: the mutations that policies apply to objects."""

from __future__ import annotations

import pytest

from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.admission.policy.mutating import MutatingAdmissionPolicy
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.registry.store import Store

ALICE = authenticated("alice")
GROUP = "admissionregistration.k8s.io/v1"
RULE = {
    "operations": ["CREATE", "UPDATE"],
    "apiGroups": ["", "apps"],
    "apiVersions": ["v1"],
    "resources": ["deployments", "pods"],
}


NO_SUCH_KEY = (
    "expression 'Object{spec: Object.spec{replicas: object.nope}}' resulted in error: "
    "no such key: nope"
)
ATOMIC = (
    "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or "
    "structs: "
)
NO_TEXT = "expected string, got &value.valueUnstructured{Value:1}"
UNTYPED = "error applying patch: failed to convert patch object to typed object: "


def applied(expression):
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patched(expression):
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def policies(obj, *mutations, name="p", binding=None, **spec):
    """Return a policy and its binding."""
    constraints = {"resourceRules": [RULE]}
    spec = {
        "matchConstraints": constraints,
        "mutations": list(mutations),
        "reinvocationPolicy": "Never",
    } | spec
    bound = {"policyName": name} | (binding or {})
    return (
        obj("MutatingAdmissionPolicy", name, "", GROUP, spec=spec),
        obj("MutatingAdmissionPolicyBinding", name, "", GROUP, spec=bound),
    )


@pytest.fixture
def policed(gate, obj):
    """Makes gates with a bound policy that has these mutations."""
    return lambda *mutations, **spec: gate(MutatingAdmissionPolicy()).has(
        *policies(obj, *mutations, **spec)
    )


@pytest.fixture
def deployment(obj):
    """Makes Deployments with this number of replicas."""
    return lambda replicas=1, **meta: obj(
        "Deployment", version="apps/v1", metadata=meta, spec={"replicas": replicas}
    )


def test_an_apply_configuration_is_merged_into_the_object(policed, deployment):
    mutation = applied("Object{spec: Object.spec{replicas: object.spec.replicas * 2}}")
    admitted = policed(mutation).admits(deployment(2, labels={"a": "b"}), user=ALICE)
    assert admitted == deployment(4, labels={"a": "b"})


def test_list_items_are_merged_by_their_keys(policed, pod):
    mutation = applied(
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'side', image: 's'}]}}"
    )
    admitted = policed(mutation).admits(pod(), user=ALICE)
    names = [one["name"] for one in admitted["spec"]["containers"]]
    assert sorted(names) == ["c", "side"]


def test_a_mutation_gets_the_result_of_the_previous_mutations(policed, deployment):
    mutations = (
        patched("[JSONPatch{op: 'add', path: '/metadata/labels', value: {'n': '1'}}]"),
        patched(
            "[JSONPatch{op: 'test', path: '/metadata/labels/n', value: '1'},"
            " JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'),"
            " value: object.metadata.labels.n}]"
        ),
    )
    admitted = policed(*mutations).admits(deployment(), user=ALICE)
    assert admitted["metadata"]["labels"] == {"n": "1", "a/b": "1"}


@pytest.mark.parametrize(
    ("mutation", "why"),
    [
        (
            applied("Object{spec: Object.spec{replicas: object.nope}}"),
            NO_SUCH_KEY,
        ),
        (
            applied("Object{spec: Object.spec{selector: Object.spec.selector{}}}"),
            f"{ATOMIC}.spec.selector",
        ),
        (
            applied("Object{spec: Object.spec{replica: 3}}"),
            f"{UNTYPED}.spec.replica: field not declared in schema",
        ),
        (
            applied("Object{metadata: Object.metadata{labels: {'n': 1}}}"),
            f"{UNTYPED}.metadata.labels.n: {NO_TEXT}",
        ),
        (
            patched("[JSONPatch{op: 'remove', path: '/nope'}]"),
            (
                "JSON Patch: error in remove for path: '/nope': Unable to remove nonexistent key:"
                " nope: missing value"
            ),
        ),
        (
            patched("'text'"),
            "type mismatch: JSONPatchType.expression should evaluate to array",
        ),
    ],
    ids=["error", "atomic", "field", "value", "patch", "type"],
)
def test_a_failed_mutation_refuses_the_request_or_is_ignored(policed, deployment, mutation, why):
    with pytest.raises(ApiError) as refused:
        policed(mutation).admits(deployment(), user=ALICE)
    message = f"policy 'p' with binding 'p' denied request: {why}"
    assert (refused.value.code, refused.value.message) == (403, message)
    assert refused.value.details["kind"] == "deployments"
    found = policed(mutation, failurePolicy="Ignore")
    assert found.admits(deployment(), user=ALICE) == deployment()


def test_other_mutations_are_applied_after_an_ignored_failure(policed, deployment):
    mutations = (
        patched("[JSONPatch{op: 'remove', path: '/nope'}]"),
        applied("Object{spec: Object.spec{replicas: 3}}"),
    )
    admitted = policed(*mutations, failurePolicy="Ignore").admits(deployment(), user=ALICE)
    assert admitted == deployment(3)


@pytest.mark.parametrize(
    ("replicas", "then"), [(1, 5), (2, 2)], ids=["the expected value", "another value"]
)
def test_a_json_patch_is_applied_only_if_its_test_operation_succeeds(
    policed, deployment, replicas, then
):
    """upstream: mutating/patch/json_patch.go:Patch"""
    mutation = patched(
        "[JSONPatch{op: 'test', path: '/spec/replicas', value: 1},"
        " JSONPatch{op: 'replace', path: '/spec/replicas', value: 5}]"
    )
    assert policed(mutation).admits(deployment(replicas), user=ALICE) == deployment(then)


def test_a_policy_is_limited_by_match_conditions_and_operations(policed, deployment):
    mutation = applied("Object{spec: Object.spec{replicas: 7}}")
    conditions = [{"name": "c", "expression": "object.spec.replicas > 1"}]
    found = policed(mutation, matchConditions=conditions)
    assert found.admits(deployment(1), user=ALICE) == deployment(1)
    assert found.admits(deployment(2), user=ALICE) == deployment(7)
    assert found.admits(deployment(2), Operation.DELETE, user=ALICE) == deployment(2)


def test_a_policy_is_applied_once_for_each_selected_parameter(policed, deployment, obj):
    mutation = applied("Object{metadata: Object.metadata{labels: {params.data.key: 'x'}}}")
    found = policed(
        mutation,
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        binding={"paramRef": {"selector": {}}},
    ).has(*(obj("ConfigMap", key, data={"key": key}) for key in ("k", "l")))
    admitted = found.admits(deployment(), user=ALICE)
    assert admitted["metadata"]["labels"] == {"k": "x", "l": "x"}


class Ids:
    """An id source that always returns the same ids."""

    def new_uid(self, kind, namespace, name):
        return "uid"

    def new_suffix(self):
        return "00000"


@pytest.mark.parametrize(("policy", "count"), [("Never", 1), ("IfNeeded", 2)])
def test_a_policy_with_reinvocation_if_needed_runs_again_after_changes(
    obj, deployment, policy, count
):
    store = Store(Ids(), admission=(MutatingAdmissionPolicy(),))
    counts = applied(
        "Object{metadata: Object.metadata{annotations: {'count': has(object.metadata.annotations)"
        " ? '2' : '1'}}}"
    )
    labels = applied("Object{metadata: Object.metadata{labels: {'a': 'b'}}}")
    for manifest in (
        *policies(obj, counts, name="a", reinvocationPolicy=policy),
        *policies(obj, labels, name="b"),
    ):
        store.create(manifest, 0)
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    }
    stored = store.create({**deployment(), "spec": spec}, 0, write=Write(user=ALICE))
    assert stored["metadata"]["labels"] == {"a": "b"}
    assert stored["metadata"]["annotations"] == {"count": str(count)}
