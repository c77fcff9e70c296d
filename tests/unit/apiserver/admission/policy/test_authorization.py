"""The rights that authors of policies and bindings need for their parameters."""

from __future__ import annotations

import pytest

from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.admission.policy.authorization import PolicyAuthorization
from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.auth.authorization.rbac import Rbac
from fairlead.apiserver.request import ADMIN

GROUP = "admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io/v1"
ALICE = authenticated("alice")
SECRETS = {"apiVersion": "v1", "kind": "Secret"}
SAID = "user &{alice  [system:authenticated] map[]}"
KINDS = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")


@pytest.fixture
def alone(gate, obj):
    """Returns (gate, arguments of a write by alice).

    Alice may get the Secrets `names` in the namespace n; "" means all of them.
    """

    def made(*names, role="Role"):
        subject = {"kind": "User", "name": "alice"}
        rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}
        rule |= {"resourceNames": list(names)} if all(names) and names else {}
        place = "n" if role == "Role" else ""
        reference = {"kind": role, "name": "r"}
        bound = obj(f"{role}Binding", "b", place, RBAC, roleRef=reference, subjects=[subject])
        found = gate(PolicyAuthorization())
        if names:
            found.has(obj(role, "r", place, RBAC, rules=[rule]), bound)
        return found, {"user": ALICE, "rights": Rbac(found.storage)}

    return made


@pytest.mark.parametrize("kind", KINDS)
def test_the_author_of_a_policy_must_be_able_to_read_its_param_kind(alone, obj, kind):
    policy = obj(kind, "p", "", GROUP, spec={"paramKind": SECRETS})
    for names, role in (((), "Role"), (("",), "Role"), (("x",), "ClusterRole")):
        found, about = alone(*names, role=role)
        assert found.refusal(policy, **about) == (
            f'{kind}.admissionregistration.k8s.io "p" is invalid: spec.paramKind: Forbidden: '
            f'{SAID} must have "get" permission on all objects of the referenced paramKind '
            "(kind=Secret, apiVersion=v1)"
        )
    found, about = alone("", role="ClusterRole")
    assert found.admits(policy, **about) == policy
    assert found.admits(policy, **{**about, "user": ADMIN}) == policy


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "is_let"), [("x", True), ("y", False)])
def test_the_author_of_a_binding_must_be_able_to_read_its_params(alone, obj, kind, name, is_let):
    reference = {"name": name, "namespace": "n"}
    spec = {"policyName": "p", "paramRef": reference}
    binding = obj(f"{kind}Binding", "q", "", GROUP, spec=spec)
    found, about = alone("x")
    found.has(obj(kind, "p", "", GROUP, spec={"paramKind": SECRETS}))
    if is_let:
        assert found.admits(binding, **about) == binding
    else:
        assert found.refusal(binding, **about) == (
            f'{kind}Binding.admissionregistration.k8s.io "q" is invalid: spec.paramRef: Forbidden: '
            f'{SAID} does not have "get" permission on the object referenced by paramRef'
        )


def test_binding_an_unknown_policy_requires_the_right_to_read_everything(alone, obj):
    """The policy could later specify parameters of any kind."""
    spec = {"policyName": "later", "paramRef": {"name": "x", "namespace": "n"}}
    found, about = alone("", role="ClusterRole")
    binding = obj("ValidatingAdmissionPolicyBinding", "q", "", GROUP, spec=spec)
    assert "spec.paramRef: Forbidden" in found.refusal(binding, **about)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unchanged_param_kind_requires_no_right(alone, obj, kind):
    found, about = alone()
    old = obj(kind, "p", "", GROUP, spec={"paramKind": SECRETS})
    new = obj(kind, "p", "", GROUP, spec={"paramKind": SECRETS, "failurePolicy": "Ignore"})
    assert found.admits(new, Operation.UPDATE, old=old, **about) == new
    assert found.admits(obj(kind, "p", "", GROUP, spec={}), **about)
