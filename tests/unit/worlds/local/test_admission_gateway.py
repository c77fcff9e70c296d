"""Admission policies and webhooks apply to the writes of controllers."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from datetime import UTC, datetime

import pytest
from aiohttp import web

from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.auth.certificate_authority import new_authority, new_server
from fairlead.apiserver.kind import find_kind
from fairlead.apiserver.request import ADMIN
from fairlead.engine.core.command import IssuedCommand, ObjectRef, PatchObject, PatchStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.issuer import KUBELET
from fairlead.engine.core.stimulus import CommandSucceeded, FailureReason
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.local.cluster import LocalCluster, LocalOptions
from fairlead.worlds.local.server.runner import Runner
from fairlead.worlds.local.world import LocalWorld

GROUP = "/apis/admissionregistration.k8s.io/v1"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
LABELS = {"app": "web"}
POD = {"containers": [{"name": "c", "image": "i"}]}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": POD},
    },
}
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
ALL = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
REAL_NOW = datetime.now(UTC)  # noqa: TID251 - certificates are checked in real time
AUTHORITY = new_authority(REAL_NOW)


def policy(expression, rule=RULE):
    """Return a policy and its binding."""
    group = {"apiVersion": "admissionregistration.k8s.io/v1"}
    meta = {"metadata": {"name": "p"}}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression}],
    }
    bound = {"policyName": "p", "validationActions": ["Deny"]}
    return (
        {**group, "kind": "ValidatingAdmissionPolicy", **meta, "spec": spec},
        {**group, "kind": "ValidatingAdmissionPolicyBinding", **meta, "spec": bound},
    )


def webhook(url, rule=RULE, **more):
    bundle = base64.b64encode(AUTHORITY.certificate.encode()).decode()
    hook = {
        "name": "side.example.com",
        "clientConfig": {"url": url, "caBundle": bundle},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "w"},
        "webhooks": [hook],
    }


def test_admission_policies_apply_to_controllers(cluster):
    users = "request.userInfo.username != 'system:serviceaccount:kube-system:replicaset-controller'"
    for manifest in policy(users):
        cluster.local.store.create(manifest, cluster.clock.now())
    cluster.ask("POST", DEPLOYMENTS, DEPLOYMENT)
    cluster.pass_time(5)
    assert cluster.list("pod") == []
    [replica_set] = cluster.list("replicaset")
    [condition] = replica_set["status"]["conditions"]
    assert condition["reason"] == "FailedCreate"
    assert "ValidatingAdmissionPolicy 'p' with binding 'p' denied request" in condition["message"]


def test_a_controller_does_not_wait_for_a_default_account(cluster):
    """A client's request for a pod would wait for the account `default`."""
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"count/serviceaccounts": "0"}}}
    cluster.ask("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    cluster.pass_time(1)
    cluster.ask("DELETE", "/api/v1/namespaces/default/serviceaccounts/default")
    for manifest in policy("true"):
        cluster.local.store.create(manifest, cluster.clock.now())
    pending = cluster.local.control_plane.pending  # webhooks are called from now on
    cluster.ask("POST", DEPLOYMENTS, DEPLOYMENT)
    cluster.pass_time(5)
    assert not pending
    [replica_set] = cluster.list("replicaset")
    [condition] = replica_set["status"]["conditions"]
    assert condition["message"].endswith('serviceaccount "default" not found')


SEEN = """Object{metadata: Object.metadata{labels: {
    "object": string(has(object.metadata.name)), "request": string(has(request.name))}}}"""


def mutating_policy(expression):
    """Return a policy that changes new pods by an apply configuration, and its binding."""
    _, binding = policy("true")
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    spec = {
        "matchConstraints": {"resourceRules": [RULE]},
        "reinvocationPolicy": "Never",
        "mutations": [mutation],
    }
    made = {**binding, "kind": "MutatingAdmissionPolicy", "spec": spec}
    bound = {"kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": "p"}}
    return made, {**binding, **bound}


def test_policies_that_change_an_object_do_not_see_its_generated_name(cluster):
    """The API server generates the name after them. The request itself never has a name."""
    named = "object.metadata.name in ['own', 'db-0']"
    is_sent = f"has(object.metadata.name) && has(request.name) == ({named})"
    for manifest in (*mutating_policy(SEEN), *policy(is_sent)):
        cluster.local.store.create(manifest, cluster.clock.now())
    pods = "/api/v1/namespaces/default/pods"
    cluster.ask("POST", pods, {"metadata": {"generateName": "made-"}, "spec": POD})
    cluster.ask("POST", pods, {"metadata": {"name": "own"}, "spec": POD})
    cluster.ask("POST", DEPLOYMENTS, DEPLOYMENT)
    spec = {**DEPLOYMENT["spec"], "replicas": 1, "serviceName": "db"}
    stateful = {"metadata": {"name": "db"}, "spec": spec}
    cluster.ask("POST", "/apis/apps/v1/namespaces/default/statefulsets", stateful)
    cluster.pass_time(5)
    sent = {}
    for pod in cluster.list("pod"):
        labels = pod["metadata"]["labels"]
        sent[pod["metadata"]["name"]] = (labels["object"], labels["request"])
    assert (sent.pop("own"), sent.pop("db-0")) == (("true", "true"), ("true", "true"))
    assert list(sent.values()) == [("false", "false")] * 3


def test_a_name_that_a_policy_sets_must_be_free(cluster):
    pods = "/api/v1/namespaces/default/pods"
    before = cluster.ask("POST", pods, {"metadata": {"name": "own"}, "spec": POD})
    for manifest in mutating_policy('Object{metadata: Object.metadata{name: "own"}}'):
        cluster.local.store.create(manifest, cluster.clock.now())
    answer = cluster.ask("POST", pods, {"metadata": {"generateName": "made-"}, "spec": POD})
    assert (answer["code"], answer["reason"]) == (409, "AlreadyExists")
    assert cluster.find("pod", "own")["metadata"]["uid"] == before["metadata"]["uid"]


def test_a_status_write_of_a_kubelet_to_a_deleted_pod_raises_no_error(cluster):
    """The user name contains the node of the pod, which is unknown for a deleted pod."""
    for manifest in policy("true"):
        cluster.local.store.create(manifest, cluster.clock.now())
    world = LocalWorld(cluster.local.store)
    status = PatchStatus(ObjectRef("Pod", "default", "gone"), {"phase": "Running"})
    world.perform(IssuedCommand(status, KUBELET), cluster.clock.now())
    [outcome] = world.poll(cluster.clock.now())
    assert outcome.reason is FailureReason.NOT_FOUND


@pytest.mark.parametrize(
    "command",
    [
        PatchStatus(ObjectRef("Pod", "default", "a"), {"phase": "Running"}),
        PatchObject(ObjectRef("Pod", "default", "a"), {"metadata": {"labels": {"x": "y"}}}),
    ],
    ids=["a status write to a pod", "a patch"],
)
def test_the_outcome_of_a_command_names_its_issuer(cluster, command):
    """Then the engine passes the outcome only to controllers with this issuer."""
    meta = {"name": "a", "namespace": "default"}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": POD}
    cluster.local.store.create(manifest, cluster.clock.now())
    world = LocalWorld(cluster.local.store)
    world.perform(IssuedCommand(command, KUBELET), cluster.clock.now())
    _, outcome = world.poll(cluster.clock.now())
    assert outcome == CommandSucceeded(command, KUBELET)


def test_a_policy_that_admits_all_writes_has_no_effect(cluster):
    for manifest in policy("true", ALL):
        cluster.local.store.create(manifest, cluster.clock.now())
    cluster.ask("POST", DEPLOYMENTS, DEPLOYMENT)
    cluster.pass_time(5)
    assert [pod["status"]["phase"] for pod in cluster.list("pod")] == ["Running", "Running"]


def test_controllers_skip_webhooks_without_a_webhook_client(cluster):
    cluster.local.store.create(webhook("https://127.0.0.1:1/"), cluster.clock.now())
    cluster.ask("POST", DEPLOYMENTS, DEPLOYMENT)
    cluster.pass_time(5)
    assert len(cluster.list("pod")) == 2


class Injector:
    """A webhook that adds a container to each pod and records the requesting users."""

    def __init__(self):
        self.reviews = []

    async def answer(self, request):
        review = await request.json()
        reviewed = review["request"]
        self.reviews.append(
            (reviewed["userInfo"]["username"], reviewed["object"]["metadata"]["generateName"])
        )
        added = {"name": "side", "image": "s"}
        patch = [{"op": "add", "path": "/spec/containers/-", "value": added}]
        review["response"] = {
            "uid": reviewed["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
        }
        return web.json_response(review)


@pytest.fixture
def context(tmp_path):
    """The TLS context of a server at 127.0.0.1."""
    pair = new_server(AUTHORITY, ("127.0.0.1",), REAL_NOW)
    (tmp_path / "pair").write_text(pair.certificate + pair.key)
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.load_cert_chain(tmp_path / "pair")
    return made


@pytest.fixture
def injected(context):
    """Runs a webhook server; returns the pods of a Deployment, the requests, and the cluster."""

    async def living(port_of_webhook):
        injector = Injector()
        app = web.Application()
        app.router.add_post("/", injector.answer)
        served = web.AppRunner(app)
        await served.setup()
        await web.TCPSite(served, "127.0.0.1", 0, ssl_context=context).start()
        port = port_of_webhook or served.addresses[0][1]
        clock = LocalClock(parse_timestamp("2026-01-01T00:00:00Z"), paused=True)
        cluster = LocalCluster(LocalOptions(nodes=1), clock, {"t": ADMIN}, AUTHORITY.key)
        runner = Runner(cluster)
        runner.start()
        try:
            cluster.store.create(webhook(f"https://127.0.0.1:{port}/"), clock.now())
            cluster.store.create(DEPLOYMENT, clock.now())
            await runner.advance(0)  # the new webhook configuration takes effect
            await runner.advance(seconds(5))
            return cluster.store.list(find_kind("pod")), injector.reviews, cluster
        finally:
            runner.stop()
            await served.cleanup()

    return lambda port=0: asyncio.run(living(port))


def test_webhooks_are_called_for_pods_of_controllers(injected):
    pods, reviews, _ = injected()
    names = [[one["name"] for one in pod["spec"]["containers"]] for pod in pods]
    assert names == [["c", "side"], ["c", "side"]]
    user = "system:serviceaccount:kube-system:replicaset-controller"
    assert reviews == [(user, pod["metadata"]["generateName"]) for pod in pods]
    assert [pod["status"]["phase"] for pod in pods] == ["Running", "Running"]
    assert {row["name"] for row in pods[0]["status"]["containerStatuses"]} == {"c", "side"}


def test_an_unreachable_webhook_prevents_pods_of_controllers(injected):
    pods, _, cluster = injected(port=1)
    assert pods == []
    [replica_set] = cluster.store.list(find_kind("replicaset"))
    [condition] = replica_set["status"]["conditions"]
    assert 'failed calling webhook "side.example.com"' in condition["message"]
