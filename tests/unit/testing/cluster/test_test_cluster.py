"""A cluster for tests: its actions and its expectations."""

from __future__ import annotations

from datetime import timedelta
from ssl import create_default_context
from threading import Event, Thread
from urllib.request import Request, urlopen

import pytest

from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import seconds
from fairlead.testing import RefusedError
from fairlead.testing.cluster.start import start_cluster
from fairlead.testing.cluster.wait import ConditionWaiter, wait_s

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: once, image: busybox}]}
"""


def pod(name, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def asking(name, cpu):
    resources = {"requests": {"cpu": cpu}}
    return pod(name, containers=[{"name": "c", "image": "i", "resources": resources}])


@pytest.fixture
def cluster(tmp_path):
    """A cluster of three nodes in three zones; only the test advances its clock."""
    with start_cluster(tmp_path, nodes=3, zones=3, paused=True) as started:
        yield started


def test_controllers_create_the_pods_of_an_applied_deployment(cluster) -> None:
    [web] = cluster.apply(DEPLOYMENT)
    assert web["metadata"]["uid"]
    cluster.expect(lambda: cluster.get("deploy", "web")["status"].get("readyReplicas") == 3)
    assert {p["metadata"]["labels"]["app"] for p in cluster.list("pod")} == {"web"}
    cluster.delete("Deployment", "web")
    cluster.expect(lambda: not cluster.list("pods"), within="2m")


def test_a_pod_is_bound_and_runs(cluster) -> None:
    cluster.apply(pod("p", nodeSelector={"kubernetes.io/hostname": "node-2"}))
    assert cluster.expect_bound("p", node="node-2") == "node-2"
    assert cluster.expect_running("p") == "node-2"
    assert cluster.expect_event("Scheduled", "p")["type"] == "Normal"


def test_the_pods_of_a_job_end_after_five_seconds(cluster) -> None:
    cluster.apply(JOB)
    cluster.expect(lambda: cluster.get("job", "once")["status"].get("succeeded"), within="10s")
    [ended] = cluster.list("pods")
    times = ended["status"]["containerStatuses"][0]["state"]["terminated"]
    started, finished = (parse_timestamp(times[name]) for name in ("startedAt", "finishedAt"))
    assert finished - started == seconds(5)


def test_the_event_that_was_written_last_is_returned(cluster) -> None:
    for name in ("z", "a"):
        event = {
            "metadata": {"name": name},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
            "reason": "Pulled",
        }
        cluster.request("POST", "/api/v1/namespaces/default/events", event)
    assert cluster.expect_event("Pulled", "p")["metadata"]["name"] == "a"
    repeated = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "z"}, "count": 2}
    cluster.apply(repeated)
    assert cluster.expect_event("Pulled", "p")["metadata"]["name"] == "z"


def test_a_pending_pod_has_a_reason(cluster) -> None:
    cluster.apply(asking("big", "64"))
    message = cluster.expect_unschedulable("big", "Insufficient cpu")
    assert message.startswith("0/3 nodes are available")
    with pytest.raises(AssertionError, match=r"big was not bound within 5m: Pending, Unsch.*cpu"):
        cluster.expect_bound("big", within="5m")


def test_a_failed_expectation_shows_the_pods_without_a_node(cluster) -> None:
    cluster.apply([asking("big", "64"), asking("small", "1m"), asking("other", "32")])
    with pytest.raises(AssertionError) as failure:
        cluster.expect(lambda: False, what="a miracle")
    first, heading, *pods = str(failure.value).splitlines()
    assert (first, heading) == ("a miracle did not happen within 1m", "pods without a node:")
    assert [line.partition(":")[0] for line in pods] == ["  default/big", "  default/other"]
    assert all(
        "Unschedulable: 0/3 nodes are available: 3 Insufficient cpu" in line for line in pods
    )
    with pytest.raises(AssertionError, match="  default/other: Pending") as failure:
        cluster.expect_bound("big")
    assert str(failure.value).count("big") == 1


def test_a_failed_expectation_shows_at_most_ten_of_them(cluster) -> None:
    cluster.apply([asking(f"big-{number}", "64") for number in range(12)])
    with pytest.raises(AssertionError, match=r"\n  and 2 more$"):
        cluster.expect(lambda: False)


def test_an_eviction_happens_at_the_expected_time(cluster) -> None:
    """The time includes the grace period, the taint's delay, and five minutes of toleration."""
    cluster.apply(pod("p"))
    node = cluster.expect_running("p")
    cluster.fail_node(node)
    cluster.expect_evicted_at("p", "5m50s", tolerance="6s")


def test_an_eviction_too_early_or_too_late_fails_the_expectation(cluster) -> None:
    cluster.apply(pod("p"))
    cluster.fail_node(cluster.expect_running("p"))
    with pytest.raises(AssertionError, match="p was not evicted after 1m: Running, on node-"):
        cluster.expect_evicted_at("p", "1m")
    with pytest.raises(AssertionError, match=r"p was evicted after \d+(\.\d+)?s, not 20m"):
        cluster.expect_evicted_at("p", "20m")


def test_a_zone_fails_and_recovers(cluster) -> None:
    [failed] = cluster.fail_zone("zone-b")
    node = failed["metadata"]["name"]
    cluster.expect_event("NodeNotReady", node, within="2m")
    cluster.restore_zone("zone-b")

    def is_ready():
        conditions = cluster.get("node", node)["status"]["conditions"]
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    cluster.expect(is_ready, what="that the node is ready again")


def test_the_effects_of_requests_come_before_time_passes(monkeypatch, tmp_path) -> None:
    """The control plane starts its steps late, as on a machine that is busy."""
    monkeypatch.setattr("fairlead.worlds.local.server.runner.ITERATIONS_BEFORE_SLICE", 2_000)
    with start_cluster(tmp_path, nodes=1, paused=True) as cluster:
        before = cluster.now
        cluster.fail_node("node-1")
        cluster.expect_event("NodeNotReady", "node-1", within="2m")
        assert (cluster.now - before).total_seconds() == pytest.approx(50, abs=10)


def test_the_test_advances_the_clock(cluster) -> None:
    before = cluster.now
    assert (cluster.advance("1h30m") - before).total_seconds() == 5400
    assert cluster.now == cluster.now


def test_a_deleted_object_is_gone(cluster) -> None:
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
    cluster.delete("cm", "c")
    cluster.expect_gone("configmap", "c")
    assert cluster.get("configmap", "c") is None


def test_the_failure_names_the_finalizers_of_a_terminating_object(cluster) -> None:
    meta = {"name": "c", "finalizers": ["example.com/wait"]}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    cluster.delete("cm", "c")
    with pytest.raises(AssertionError, match="is terminating, kept by finalizers "):
        cluster.expect_gone("cm", "c")


@pytest.mark.parametrize(
    ("patience", "kind"), [(-1, ValueError), (float("nan"), ValueError), ("3", TypeError)]
)
def test_the_patience_is_a_number_of_at_least_zero(tmp_path, patience, kind) -> None:
    with pytest.raises(kind, match=r"patience_s .* is not a number"):
        start_cluster(tmp_path, patience_s=patience)


def test_a_pod_is_applied_together_with_its_namespace(cluster) -> None:
    """The API server waits for the service account of the new namespace."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}
    inside = pod("p")
    inside["metadata"]["namespace"] = "new"
    cluster.apply([namespace, inside])
    cluster.expect_running("p", namespace="new")


def test_webhooks_admit_the_objects_of_a_test(cluster) -> None:
    """Nothing listens at the webhook's URL, so failurePolicy Fail refuses the pod."""
    hook = {
        "name": "w.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [
            {
                "operations": ["CREATE"],
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["pods"],
            }
        ],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    cluster.apply(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "w"},
            "webhooks": [hook],
        }
    )
    with pytest.raises(RefusedError, match=r'failed calling webhook "w\.example\.com": .*refused'):
        cluster.apply(pod("p"))


@pytest.mark.parametrize(
    ("due", "expected"),
    [(5, 0.02), (60, 0.5), (500, 10), (None, 10)],
    ids=["a short step", "a long step", "nothing due in time", "nothing due"],
)
def test_clients_get_time_to_react_before_a_step(due, expected) -> None:
    due = None if due is None else seconds(due)
    assert wait_s(0, due, limit=seconds(300), patience_s=0.5) == expected


LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"}}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "leader"}}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CHANGES_MAX = 1200
LONG = pod("long", restartPolicy="Never")
LONG["metadata"]["annotations"] = {"fairlead.dev/run-duration": "10m"}


class Operator(Thread):
    """A client that watches the cluster, and changes an object again and again until it stops."""

    def __init__(self, cluster, path):
        super().__init__(daemon=True)
        self.cluster, self.path = cluster, path
        self.is_stopped = Event()
        trust = create_default_context(cadata=cluster.authority)
        headers = {"Authorization": f"Bearer {cluster.token}"}
        watch = Request(f"{cluster.url}/api/v1/namespaces?watch=true", headers=headers)
        self.watch = urlopen(watch, context=trust)

    def run(self):
        for change in range(CHANGES_MAX):
            if self.is_stopped.wait(0.05):
                break
            labels = {"metadata": {"labels": {"change": str(change)}}}
            self.cluster.request("PATCH", self.path, labels)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.is_stopped.set()
        self.join()
        self.watch.close()


def test_a_renewed_lease_does_not_stop_the_clock(cluster) -> None:
    """A leader renews its Lease every two seconds; the clock waits three seconds before a step."""
    cluster._waiter = ConditionWaiter(cluster._thread, patience_s=0.2)
    cluster.apply([LEASE, LONG])
    with Operator(cluster, f"{LEASES}/leader") as operator:
        cluster.expect(lambda: cluster.get("pod", "long")["status"]["phase"] == "Succeeded", "11m")
        assert operator.is_alive()


def test_changes_without_end_do_not_stop_the_clock(cluster) -> None:
    cluster._waiter = ConditionWaiter(cluster._thread, patience_s=0.2, changing_s_max=0.3)
    cluster.apply([CONFIG_MAP, LONG])
    with Operator(cluster, f"{CONFIG_MAPS}/leader") as operator:
        cluster.expect(lambda: cluster.get("pod", "long")["status"]["phase"] == "Succeeded", "11m")
        assert operator.is_alive()


def test_a_change_of_a_client_comes_before_a_long_step(cluster) -> None:
    """Without the wait, the clock would reach the time limit before the client's change."""
    cluster._waiter = ConditionWaiter(cluster._thread, patience_s=10)
    cluster.apply(CONFIG_MAP)
    began = cluster.now
    with Operator(cluster, f"{CONFIG_MAPS}/leader"):
        cluster.expect(lambda: "labels" in cluster.get("cm", "leader")["metadata"], within="1h")
    assert cluster.now - began < timedelta(minutes=1)


class Asked:
    """A waiter that records for how long it is asked to wait."""

    def __init__(self):
        self.seconds = []

    def until_watched(self, _kind, patience_s):
        self.seconds.append(patience_s)
        return True


def test_an_operator_has_a_minute_to_start(cluster) -> None:
    """On a busy machine, its imports alone may take more than ten seconds."""
    cluster._waiter = asked = Asked()
    cluster.expect_watched("pod")
    assert asked.seconds == [60]


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"labels": {"disk": "fast"}}},
        [{"op": "add", "path": "/metadata/labels/disk", "value": "fast"}],
    ],
    ids=["a merge patch", "a JSON patch"],
)
def test_a_request_patches_an_object(cluster, patch) -> None:
    patched = cluster.request("PATCH", "/api/v1/nodes/node-1", patch)
    assert patched["metadata"]["labels"]["disk"] == "fast"


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda c: c.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}),
         RefusedError, "spec.containers: Required value"),
        (lambda c: c.delete("pod", "nobody"), RefusedError, 'pods "nobody" not found'),
        (lambda c: c.get("widget", "w"), LookupError, "there is no kind 'widget'"),
        (lambda c: c.fail_node("node-1", "sulking"), ValueError, "sulking"),
        (lambda c: c.fail_node("node-9"), RefusedError, 'nodes "node-9" not found'),
        (lambda c: c.fail_zone("nowhere"), LookupError, "'nowhere'; known: zone-a, zone-b, z"),
        (lambda c: c.apply("a: b"), LookupError, "needs apiVersion and kind; found a"),
        (lambda c: c.apply({"apiVersion": "v9", "kind": "Pod"}), LookupError, "v9 Pod is not ser"),
        (lambda c: c.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}}),
         ValueError, r'a Pod without metadata.name cannot .* "/api/v1/namespaces/default/pods"'),
        (lambda c: c.restore_zone("nowhere"), LookupError, "'nowhere'; known: zone-a, zone-b, z"),
        (lambda c: c.apply("pod.yaml"), TypeError, "is 'pod.yaml' meant as a Path?"),
        (lambda c: c.expect_gone("ns", "default"), AssertionError, "within 1m: it was not deleted"),
        (lambda c: c.expect_event("Lost", "node-1"), AssertionError, "1m; there are: Registered"),
        (lambda c: c.apply("- 1"), TypeError, "a manifest is a mapping"),
        (lambda c: c.expect_evicted_at("nobody", "1m"), AssertionError, "no pod default/nobody"),
        (lambda c: c.request("GET", "/apis/widgets"), RefusedError, "GET /apis/widgets: 404 page"),
        (lambda c: c.request("GET", "/healthz"), TypeError, "GET /healthz is not a JSON object"),
        (lambda c: c.advance(5), TypeError, "a duration is text such as '90s', or a timedelta, no"),
        (lambda c: c.advance("-5s"), ValueError, "the duration -5s is negative"),
        (lambda c: c.resume(speed=-1), ValueError, "speed must be from 0.001 to 100000, not -1"),
        (lambda c: c.resume(speed="fast"), TypeError, "speed 'fast' is not a number"),
        (lambda c: c.apply(5), TypeError, "a manifest is a mapping, not int"),
        (lambda c: c.apply({"kind": "List", "items": [None]}), TypeError, "not NoneType"),
        (lambda c: c.apply({"apiVersion": "v1", "kind": "Pod", "metadata": "web"}), TypeError,
         "metadata is a mapping, not str"),
    ],
)  # fmt: skip
def test_invalid_actions_are_refused(cluster, act, error, words) -> None:
    with pytest.raises(error, match=words):
        act(cluster)


@pytest.mark.parametrize("name", ["podgroup", "PodGroup", "podgroups.scheduling.volcano.sh", "pg"])
def test_a_name_of_several_kinds_means_the_first_one_with_the_object(cluster, name) -> None:
    """Kube-batch, Volcano and scheduler-plugins all have a kind PodGroup."""
    assert cluster.list(name) == []
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    other = {"apiVersion": "scheduling.incubator.k8s.io/v1alpha1", "kind": "PodGroup"}
    cluster.apply({**group, "metadata": {"name": "train"}, "spec": {"minMember": 2}})
    assert cluster.get(name, "train")["spec"]["minMember"] == 2
    assert [one["metadata"]["name"] for one in cluster.list(name)] == ["train"]
    cluster.apply({**other, "metadata": {"name": "other"}, "spec": {"minMember": 3}})
    assert cluster.get(name, "train")["spec"]["minMember"] == 2
    cluster.delete(name, "train")
    cluster.expect_gone(name, "train")
    assert cluster.get("podgroup.scheduling.volcano.sh", "train") is None
