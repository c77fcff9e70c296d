"""Impersonation: the rights that it requires, and the resulting user."""

from __future__ import annotations

import pytest

from fairlead.apiserver.auth.authentication.token import ANONYMOUS, authenticated
from fairlead.apiserver.auth.authorization.rbac import refusal
from fairlead.apiserver.auth.authorizer import AuthorizationAttributes
from fairlead.apiserver.auth.impersonation import impersonated
from fairlead.apiserver.error import ApiError

BOB = authenticated("bob")
ATTRIBUTES = AuthorizationAttributes(BOB, "get", "", "", "v1", "pods", "", "n", "p")
KNOWN = "system:authenticated"


@pytest.fixture
def asks():
    """Impersonates with these headers; `allowed` are the requester's rights ("*": all users)."""

    def made(headers, *allowed):
        def authorize(wish):
            place = f"{wish.namespace}/" if wish.namespace else ""
            part = f"/{wish.subresource}" if wish.subresource else ""
            wanted = f"{wish.group or 'core'}:{wish.resource}{part}:{place}{wish.name}"
            is_old = wish.verb == "impersonate"
            if not is_old:
                wanted = f"{wish.verb} {wanted}"
            if wanted not in allowed and not (is_old and "*" in allowed):
                raise refusal(wish)

        return impersonated(ATTRIBUTES, headers, authorize)

    return made


def test_a_request_without_impersonation_headers_keeps_its_user(asks):
    assert asks({}) is BOB


@pytest.mark.parametrize("header", ["impersonate-group", "impersonate-uid", "impersonate-extra-a"])
def test_other_impersonation_headers_require_a_user(asks, header):
    with pytest.raises(ApiError, match="without impersonating a user"):
        asks({header: "x"}, "*")


@pytest.mark.parametrize(
    ("name", "groups", "expected"),
    [
        ("ann", None, (KNOWN,)),
        ("ann", "dev", ("dev", KNOWN)),
        ("ann", "dev\nops", ("dev", "ops", KNOWN)),
        ("ann", "dev,ops", ("dev,ops", KNOWN)),
        ("ann", f"{KNOWN}\ndev", (KNOWN, "dev")),
        ("ann", "system:unauthenticated", ("system:unauthenticated",)),
        (ANONYMOUS.name, None, ANONYMOUS.groups),
        (
            "system:serviceaccount:n:robot",
            None,
            ("system:serviceaccounts", "system:serviceaccounts:n", KNOWN),
        ),
        ("system:serviceaccount:n:robot", "dev", ("dev", KNOWN)),
        ("system:serviceaccount:n", None, (KNOWN,)),
    ],
)
def test_the_groups_of_the_impersonated_user(asks, name, groups, expected):
    headers = {"impersonate-user": name} | ({"impersonate-group": groups} if groups else {})
    found = asks(headers, "*")
    assert (found.name, found.groups) == (name, expected)


def test_uid_and_extra_fields_are_impersonated(asks):
    said = {"impersonate-uid": "7", "impersonate-extra-a.io%2fscopes": "x\ny"}
    found = asks({"impersonate-user": "ann", **said}, "*")
    assert (found.uid, found.extra) == ("7", {"a.io/scopes": ("x", "y")})


@pytest.mark.parametrize(
    ("headers", "rights"),
    [
        ({}, ["core:users:ann"]),
        ({"impersonate-group": "a\nb"}, ["core:users:ann", "core:groups:a", "core:groups:b"]),
        ({"impersonate-uid": "7"}, ["core:users:ann", "authentication.k8s.io:uids:7"]),
        (
            {"impersonate-extra-k": "v\nw"},
            [
                "core:users:ann",
                "authentication.k8s.io:userextras/k:v",
                "authentication.k8s.io:userextras/k:w",
            ],
        ),
    ],
)
def test_each_impersonated_attribute_requires_a_right(asks, headers, rights):
    headers = {"impersonate-user": "ann", **headers}
    assert asks(headers, *rights).name == "ann"
    for missing in rights:
        with pytest.raises(ApiError) as refused:
            asks(headers, *(right for right in rights if right != missing))
        assert refused.value.message == (
            'pods "p" is forbidden: User "bob" cannot impersonate-on:user-info:get resource "pods" '
            'in API group "" in the namespace "n"'
        )


@pytest.mark.parametrize(
    ("name", "right", "verb"),
    [
        (
            "system:serviceaccount:n:robot",
            "core:serviceaccounts:n/robot",
            "impersonate-on:serviceaccount:get",
        ),
        ("system:serviceaccount:n", "core:users:system:serviceaccount:n", "user-info:get"),
        ("system:serviceaccount::x", "core:users:system:serviceaccount::x", "user-info:get"),
        ("system:node:a", "core:users:system:node:a", "impersonate-on:arbitrary-node:get"),
    ],
)
def test_service_accounts_and_nodes_require_special_rights(asks, name, right, verb):
    headers = {"impersonate-user": name}
    assert asks(headers, right).name == name
    with pytest.raises(ApiError, match=verb):
        asks(headers)


def test_a_node_with_groups_is_refused_for_the_missing_unconstrained_right(asks):
    """Constrained impersonation does not apply, so the refusal is about the verb impersonate."""
    headers = {"impersonate-user": "system:node:a", "impersonate-group": "g"}
    with pytest.raises(ApiError, match='groups "g" is forbidden: User "bob" cannot impersonate'):
        asks(headers, "core:users:system:node:a")


OWN = "authentication.k8s.io"


@pytest.mark.parametrize(
    ("mode", "headers", "rights", "groups"),
    [
        (
            "user-info",
            {"impersonate-user": "ann", "impersonate-group": "dev"},
            [f"{OWN}:users:ann", f"{OWN}:groups:dev"],
            ("dev", KNOWN),
        ),
        (
            "serviceaccount",
            {"impersonate-user": "system:serviceaccount:n:robot"},
            [f"{OWN}:serviceaccounts:n/robot"],
            ("system:serviceaccounts", "system:serviceaccounts:n", KNOWN),
        ),
        (
            "arbitrary-node",
            {"impersonate-user": "system:node:a"},
            [f"{OWN}:nodes:a"],
            ("system:nodes", KNOWN),
        ),
    ],
)
def test_constrained_impersonation_requires_a_right_for_user_and_action(
    asks, mode, headers, rights, groups
):
    """One right is for impersonating the user, another for the action as that user."""
    needed = [f"impersonate:{mode} {right}" for right in rights]
    needed.append(f"impersonate-on:{mode}:get core:pods:n/p")
    assert asks(headers, *needed).groups == groups
    for missing in needed:
        with pytest.raises(ApiError, match=f'User "bob" cannot impersonate.*:{mode}'):
            asks(headers, *(right for right in needed if right != missing))


@pytest.mark.parametrize("group", ["system:masters", "", "dev\n"])
def test_constrained_impersonation_of_system_masters_is_refused(asks, group):
    headers = {"impersonate-user": "ann", "impersonate-group": group}
    named = [f"impersonate:user-info {OWN}:groups:{one}" for one in group.split("\n")]
    user = f"impersonate:user-info {OWN}:users:ann"
    with pytest.raises(ApiError, match="groups"):
        asks(headers, user, "impersonate-on:user-info:get core:pods:n/p", *named)
