"""RBAC: rules, roles, bindings, and the roles of a new cluster."""

from __future__ import annotations

import pytest

from fairlead.apiserver.auth.authentication.token import (
    ANONYMOUS,
    TokenAuthenticator,
    authenticated,
)
from fairlead.apiserver.auth.authorization.policy_rule import (
    allows,
    compact_rules,
    rule_text,
    uncovered_rules,
)
from fairlead.apiserver.auth.authorization.rbac import Rbac
from fairlead.apiserver.auth.authorizer import AuthorizationAttributes
from fairlead.apiserver.auth.bootstrap_policy.objects import bootstrap_objects
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.request import SYSTEM_MASTERS
from fairlead.apiserver.storage.storage import Storage

ALICE = authenticated("alice", ("dev",))
BOB = authenticated("bob")
GROUP = "rbac.authorization.k8s.io"


def put(storage, obj):
    storage.put(kind_of(obj), obj)


@pytest.fixture
def storage():
    """A storage with the bootstrap roles and bindings."""
    found = Storage()
    for obj in bootstrap_objects():
        put(found, obj)
    return found


def binding(name, role, *subjects, namespace="", kind="ClusterRole"):
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": [{"kind": kind, "name": name} for kind, name in subjects],
    }


def role(name, *rules, namespace=""):
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    kind = "Role" if namespace else "ClusterRole"
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": meta, "rules": list(rules)}


def rule(verbs, resources, groups="", names=()):
    found = {
        "verbs": verbs.split(","),
        "apiGroups": groups.split(","),
        "resources": resources.split(","),
    }
    return {**found, "resourceNames": list(names)} if names else found


def asks(user, verb, resource="", *, path="", namespace="", name="", group=""):
    resource, _, part = resource.partition("/")
    return AuthorizationAttributes(user, verb, path, group, "v1", resource, part, namespace, name)


@pytest.mark.parametrize(
    ("given", "requested", "allowed"),
    [
        (rule("get", "pods"), ("get", "pods"), True),
        (rule("get", "pods"), ("list", "pods"), False),
        (rule("*", "pods"), ("list", "pods"), True),
        (rule("get", "pods"), ("get", "pods/log"), False),
        (rule("get", "pods/log"), ("get", "pods/log"), True),
        (rule("get", "*/log"), ("get", "pods/log"), True),
        (rule("get", "*"), ("get", "pods/log"), True),
        (rule("get", "pods", "apps"), ("get", "pods"), False),
        (rule("get", "pods", "*"), ("get", "pods"), True),
        (rule("get", "pods", names=["a"]), ("get", "pods"), False),
    ],
)
def test_a_rule_allows_its_verbs_groups_and_resources(given, requested, allowed):
    assert allows(given, asks(BOB, *requested)) is allowed


def test_a_rule_with_resource_names_allows_only_these_objects():
    given = rule("get", "pods", names=["a"])
    assert allows(given, asks(BOB, "get", "pods", name="a"))
    assert not allows(given, asks(BOB, "get", "pods", name="b"))


@pytest.mark.parametrize(
    ("url", "path", "allowed"),
    [
        ("/healthz", "/healthz", True),
        ("/healthz", "/healthz/etcd", False),
        ("/healthz/*", "/healthz/etcd", True),
        ("*", "/x", True),
    ],
)
def test_a_rule_allows_non_resource_urls(url, path, allowed):
    given = {"verbs": ["get"], "nonResourceURLs": [url]}
    assert allows(given, asks(BOB, "get", path=path)) is allowed


def test_uncovered_rules_are_split_by_resource_and_then_compacted():
    wanted = [rule("get,list", "pods,secrets")]
    missing = uncovered_rules([rule("get,list", "pods"), rule("get", "*")], wanted)
    assert list(map(rule_text, compact_rules(missing))) == [
        '{APIGroups:[""], Resources:["secrets"], Verbs:["list"]}'
    ]


def test_the_group_system_masters_may_do_everything(storage):
    boss = authenticated("x", (SYSTEM_MASTERS,))
    assert Rbac(Storage()).verdict(asks(boss, "delete", "nodes", name="a")).allowed


@pytest.mark.parametrize(
    ("user", "requested", "allowed"),
    [
        (ANONYMOUS, {"path": "/healthz"}, True),
        (ANONYMOUS, {"path": "/api"}, False),
        (BOB, {"path": "/api"}, True),
        (BOB, {"path": "/metrics"}, False),
        (BOB, {"resource": "pods"}, False),
    ],
)
def test_unauthenticated_and_authenticated_users_may_read_public_paths(
    storage, user, requested, allowed
):
    assert Rbac(storage).verdict(asks(user, "get", **requested)).allowed is allowed


def test_a_role_binding_grants_rights_in_its_namespace_only(storage):
    rights = Rbac(storage)
    assert not rights.verdict(asks(ALICE, "list", "pods", namespace="n")).allowed
    put(storage, binding("v", "view", ("Group", "dev"), namespace="n"))
    verdict = rights.verdict(asks(ALICE, "list", "pods", namespace="n"))
    assert verdict.allowed
    assert verdict.reason == (
        'RBAC: allowed by RoleBinding "v/n" of ClusterRole "view" to Group "dev"'
    )
    assert not rights.verdict(asks(ALICE, "list", "pods", namespace="m")).allowed
    assert not rights.verdict(asks(ALICE, "list", "secrets", namespace="n")).allowed
    assert not rights.verdict(asks(BOB, "list", "pods", namespace="n")).allowed


def test_a_service_account_is_bound_by_name_and_namespace(storage):
    put(storage, role("r", rule("get", "pods"), namespace="n"))
    subject = {"kind": "ServiceAccount", "name": "robot"}
    bound = binding("b", "r", namespace="n", kind="Role") | {"subjects": [subject]}
    put(storage, bound)
    robot = authenticated("system:serviceaccount:n:robot")
    assert Rbac(storage).verdict(asks(robot, "get", "pods", namespace="n")).allowed


def test_an_aggregated_role_has_the_rules_of_all_selected_roles(storage):
    gathering = role("all") | {
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"in": "all"}}]}
    }
    gathering["metadata"]["labels"] = {"in": "all"}
    part = role("part", rule("get", "widgets", "example.com"))
    part["metadata"]["labels"] = {"in": "all"}
    put(storage, gathering)
    put(storage, binding("b", "all", ("User", "bob")))
    rights = Rbac(storage)
    assert not rights.verdict(asks(BOB, "get", "widgets", group="example.com")).allowed
    put(storage, part)
    assert rights.verdict(asks(BOB, "get", "widgets", group="example.com")).allowed


def test_roles_that_aggregate_each_other_are_aggregated_once(storage):
    """Each role is visited once, not once for each of the millions of paths between them."""
    for number in range(12):
        gathering = role(f"r{number:02}", rule("get", f"things{number}"))
        gathering["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {"in": "ring"}}]}
        gathering["metadata"]["labels"] = {"in": "ring"}
        put(storage, gathering)
    rules = Rbac(storage).rules_of({"kind": "ClusterRole", "name": "r05"}, "")
    given = [one["resources"][0] for one in rules]
    assert sorted(given) == sorted(f"things{number}" for number in range(12))
    assert given[:3] == ["things5", "things0", "things1"]


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        (
            asks(BOB, "update", "pods/status", namespace="n", name="a"),
            (
                'pods "a" is forbidden: User "bob" cannot update resource "pods/status" in API group '  # noqa: E501
                '"" in the namespace "n"'
            ),
        ),
        (
            asks(BOB, "list", "foos", group="x.io"),
            (
                'foos.x.io is forbidden: User "bob" cannot list resource "foos" in API group "x.io" '  # noqa: E501
                "at the cluster scope"
            ),
        ),
        (
            asks(BOB, "get", "namespaces", name="n"),
            (
                'namespaces "n" is forbidden: User "bob" cannot get resource "namespaces" in API '
                'group "" in the namespace "n"'
            ),
        ),
        (asks(BOB, "get", path="/nope"), 'forbidden: User "bob" cannot get path "/nope"'),
    ],
)
def test_a_refusal_names_user_verb_and_resource(storage, requested, message):
    with pytest.raises(ApiError) as refused:
        Rbac(storage)(requested)
    assert (refused.value.code, refused.value.message) == (403, message)


def test_a_list_of_namespaces_is_a_request_without_a_namespace(storage):
    """Otherwise a user with a role in one namespace could list all namespaces."""
    put(storage, role("r", rule("get,list,watch", "namespaces"), namespace="n"))
    put(storage, binding("b", "r", ("User", "bob"), namespace="n", kind="Role"))
    rights = Rbac(storage)
    rights(asks(BOB, "get", "namespaces", name="n"))
    for verb in ("list", "watch"):
        with pytest.raises(ApiError, match="at the cluster scope"):
            rights(asks(BOB, verb, "namespaces", name="n"))


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (None, "system:anonymous"),
        ("Bearer secret", "bob"),
        ("bearer secret ", "bob"),
        ("Bearer secret more", "bob"),
        ("Bearer  secret", "system:anonymous"),
        ("Basic Ym9iOg==", "system:anonymous"),
        ("Bearer ", "system:anonymous"),
        ("Bearer signed", "alice"),
    ],
)
def test_the_bearer_token_of_a_request_identifies_its_user(header, name):
    tokens = TokenAuthenticator({"secret": BOB}, {"signed": ALICE}.get)
    assert tokens({} if header is None else {"authorization": header}).name == name


def test_an_unknown_token_is_refused():
    with pytest.raises(ApiError) as refused:
        TokenAuthenticator({"secret": BOB})({"authorization": "Bearer nope"})
    assert (refused.value.code, refused.value.reason) == (401, "Unauthorized")


@pytest.mark.parametrize(
    ("account", "verb", "resource", "is_allowed"),
    [
        ("replicaset-controller", "create", "pods", True),
        ("replicaset-controller", "update", "nodes", False),
        ("node-controller", "patch", "nodes", True),
        ("generic-garbage-collector", "delete", "widgets", True),
        ("default", "create", "pods", False),
    ],
)
def test_each_controller_has_only_the_rights_that_it_needs(
    storage, account, verb, resource, is_allowed
):
    groups = ("system:serviceaccounts", "system:serviceaccounts:kube-system")
    user = authenticated(f"system:serviceaccount:kube-system:{account}", groups)
    requested = AuthorizationAttributes(user, verb, "", "", "v1", resource, "", "default", "x")
    if is_allowed:
        Rbac(storage)(requested)
    else:
        with pytest.raises(ApiError, match="is forbidden"):
            Rbac(storage)(requested)
