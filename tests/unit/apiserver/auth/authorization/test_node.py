"""The node authorizer: kubelets read the objects of their own pods, and write their own node."""

from __future__ import annotations

import pytest

from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.auth.authorization.node_authorizer import NodeAuthorizer
from fairlead.apiserver.auth.authorizer import AccessDecision, AuthorizationAttributes
from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.storage.storage import Storage

NODE_1 = authenticated("system:node:node-1", ("system:nodes",))
DRA = "resource.k8s.io"
STORAGE = "storage.k8s.io"
OWN = "spec.nodeName=node-1"


def asks(verb, resource, group="", *, namespace="", name="", selector=""):
    resource, _, part = resource.partition("/")
    return AuthorizationAttributes(
        NODE_1, verb, "", group, "v1", resource, part, namespace, name, selector
    )


def obj(api_version, kind, name, namespace="", **fields):
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}


def pod_on(node, name="p", **spec):
    return obj("v1", "Pod", name, "n", spec={"nodeName": node, **spec})


def of(*objects):
    storage = Storage()
    for one in objects:
        storage.put(kind_of(one), one)
    return NodeAuthorizer(storage)


def is_allowed(answer):
    return isinstance(answer, AccessDecision) and answer.allowed


SECRET_USES = [
    {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
    {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]},
    {"imagePullSecrets": [{"name": "s"}]},
    {"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "s"}}]}]},
    {
        "initContainers": [
            {"name": "c", "env": [{"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}
        ]
    },
]


@pytest.mark.parametrize("spec", SECRET_USES)
def test_a_node_can_read_only_secrets_of_its_own_pods(spec):
    requested = asks("get", "secrets", namespace="n", name="s")
    assert of(pod_on("node-2", **spec))(requested) == (
        "no relationship found between node 'node-1' and this object"
    )
    assert is_allowed(of(pod_on("node-1", **spec))(requested))
    assert not is_allowed(of(pod_on("node-1", **spec))(asks("list", "secrets", name="s")))


CLUSTER = of(
    pod_on(
        "node-1",
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        resourceClaims=[{"name": "r", "resourceClaimName": "claim"}, {"name": "t"}],
        containers=[{"name": "c", "envFrom": [{"secretRef": {"name": "token"}}]}],
    )
    | {"status": {"resourceClaimStatuses": [{"name": "t", "resourceClaimName": "made"}]}},
    pod_on("node-2", "q"),
    obj("v1", "PersistentVolumeClaim", "c", "n", spec={"volumeName": "pv"}),
    obj("resource.k8s.io/v1", "ResourceSlice", "own", spec={"nodeName": "node-1"}),
    obj("resource.k8s.io/v1", "ResourceSlice", "other", spec={"nodeName": "node-2"}),
    obj("storage.k8s.io/v1", "VolumeAttachment", "own", spec={"nodeName": "node-1"}),
    obj("storage.k8s.io/v1", "VolumeAttachment", "other", spec={"nodeName": "node-2"}),
)


@pytest.mark.parametrize(
    "requested",
    [
        asks("get", "nodes", name="node-1"),
        asks("list", "nodes", name="node-1"),
        asks("create", "nodes"),
        asks("patch", "nodes/status", name="node-1"),
        asks("list", "pods", selector=OWN),
        asks("watch", "pods", selector="a=b,spec.nodeName==node-1"),
        asks("get", "pods", namespace="n", name="p"),
        asks("list", "pods", namespace="n", name="p"),
        asks("create", "pods", namespace="n"),
        asks("get", "persistentvolumeclaims", namespace="n", name="c"),
        asks("update", "persistentvolumeclaims/status", namespace="n", name="c"),
        asks("get", "persistentvolumes", name="pv"),
        asks("get", "endpoints", namespace="n", name="e"),
        asks("create", "csinodes", STORAGE),
        asks("get", "csinodes", STORAGE, name="node-1"),
        asks("get", "volumeattachments", STORAGE, name="own"),
        asks("create", "resourceslices", DRA),
        asks("update", "resourceslices", DRA, name="own"),
        asks("deletecollection", "resourceslices", DRA, selector=OWN),
        asks("get", "resourceclaims", DRA, namespace="n", name="claim"),
        asks("get", "resourceclaims", DRA, namespace="n", name="made"),
    ],
)
def test_allowed_requests_of_a_node(requested):
    assert is_allowed(CLUSTER(requested))


UNRELATED = "no relationship found between node 'node-1' and this object"
ONLY_OWN = "only its own Node object"


@pytest.mark.parametrize(
    ("requested", "why"),
    [
        (asks("get", "nodes", name="node-2"), f"node 'node-1' cannot read 'node-2', {ONLY_OWN}"),
        (asks("list", "nodes"), f"node 'node-1' cannot read all nodes, {ONLY_OWN}"),
        (asks("delete", "nodes", name="node-1"), ""),
        (asks("list", "secrets", namespace="n"), "No Object name found"),
        (
            asks("list", "secrets", name="s"),
            "can only read namespaced object of this type",
        ),
        (asks("delete", "namespaces", name="n"), ""),
        (asks("list", "pods"), "can only list/watch pods with spec.nodeName field selector"),
        (
            asks("list", "pods", selector="spec.nodeName=node-2"),
            "can only list/watch pods with spec.nodeName field selector",
        ),
        (asks("get", "pods", namespace="n", name="q"), UNRELATED),
        (asks("get", "pods/log", namespace="n", name="p"), "cannot get subresource"),
        (
            asks("get", "persistentvolumeclaims/status", namespace="n", name="c"),
            "can only get/update/patch this type",
        ),
        # a Secret of the same name is not a claim
        (asks("get", "persistentvolumeclaims", namespace="n", name="token"), UNRELATED),
        (asks("get", "persistentvolumes", name="other"), UNRELATED),
        (asks("list", "persistentvolumes"), "can only get individual resources of this type"),
        (
            asks("get", "csinodes", STORAGE, name="node-2"),
            "can only access CSINode with the same name as the requesting node",
        ),
        (
            asks("list", "csinodes", STORAGE),
            "can only get, create, update, patch, or delete a CSINode",
        ),
        (asks("get", "volumeattachments", STORAGE, name="other"), UNRELATED),
        (asks("update", "resourceslices", DRA, name="other"), UNRELATED),
        (
            asks("list", "resourceslices", DRA),
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
        (asks("get", "resourceclaims", DRA, namespace="n", name="other"), UNRELATED),
        (
            asks("get", "serviceaccounts", namespace="n", name="a"),
            "can only create tokens for individual service accounts",
        ),
    ],
)
def test_refused_requests_of_a_node(requested, why):
    assert CLUSTER(requested) == why
