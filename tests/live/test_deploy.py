"""The manifests of deploy/: they are up to date, and their roles permit all that `run` needs."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import deploy_manifests
import pytest
import yaml
from kubernetes import client, config, utils
from tests.up_process import up

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_generated_files_are_current():
    """`python tools/deploy_manifests.py` generates them."""
    found = {path: (DEPLOY / path).read_text() for path in deploy_manifests.files()}
    assert found == deploy_manifests.files()


def test_the_chart_differs_from_the_manifests_only_in_values():
    chart = deploy_manifests.rendered("template.yaml", is_chart=True)
    for _, default, _, helm in deploy_manifests.VALUES:
        chart = chart.replace(helm, str(default))
    assert chart == deploy_manifests.rendered("template.yaml", is_chart=False)


def manifests():
    text = (DEPLOY / "manifests" / "fairlead.yaml").read_text()
    return [one for one in yaml.safe_load_all(text) if one]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster with the manifests, and its audit log.

    Its own scheduler does not run, because that scheduler also binds pods of the batch scheduler
    `fairlead`.
    """
    folder = tmp_path_factory.mktemp("deploy")
    path, audit = folder / "kubeconfig", folder / "audit.jsonl"
    options = ("--nodes", "3", "--without", "scheduler")
    options += ("--kubeconfig", str(path), "--audit", str(audit))
    with up(*options, paused=False):
        config.load_kube_config(str(path))
        api = client.ApiClient()
        for one in manifests():
            utils.create_from_dict(api, one)
        yield path, audit


def token_of(account):
    spec = {"spec": {"audiences": [], "expirationSeconds": 3600}}
    api = client.CoreV1Api()
    found = api.create_namespaced_service_account_token(account, "fairlead", spec)
    return found.status.token


def as_service_account(path, folder):
    """A kubeconfig with the token of the manifests' service account."""
    kubeconfig = yaml.safe_load(path.read_text())
    kubeconfig["users"][0]["user"] = {"token": token_of("fairlead")}
    file = folder / "account"
    file.write_text(yaml.safe_dump(kubeconfig))
    return str(file)


def pod(name, cpu, priority_class=None):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "schedulerName": "fairlead"}
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {"metadata": {"name": name}, "spec": spec}


def eventually(found, seconds=60):
    end = time.monotonic() + seconds  # noqa: TID251 - another process works in real time
    while not (value := found()):
        assert time.monotonic() < end, "waited in vain"  # noqa: TID251
        time.sleep(0.05)  # noqa: TID251
    return value


def test_the_roles_permit_binding_preemption_events_and_leader_election(cluster, tmp_path):
    path, audit = cluster
    (file,) = (one for one in manifests() if one["kind"] == "ConfigMap")
    settings = tmp_path / "scheduler.yaml"
    settings.write_text(file["data"]["scheduler.yaml"])
    options = ("--config", str(settings), "--listen", "none")
    kubeconfig = as_service_account(path, tmp_path)
    command = [sys.executable, "-m", "fairlead.cli", "run", "--kubeconfig", kubeconfig, *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    api = client.CoreV1Api()
    try:
        assert "running in" in process.stderr.readline()
        high = {"metadata": {"name": "high"}, "value": 1000}
        client.SchedulingV1Api().create_priority_class(high)
        for number in range(3):
            api.create_namespaced_pod("default", pod(f"low{number}", "3"))
        for number in range(3):
            eventually(
                lambda name=f"low{number}": api.read_namespaced_pod(name, "default").spec.node_name
            )
        api.create_namespaced_pod("default", pod("huge", "90"))
        api.create_namespaced_pod("default", pod("urgent", "3", "high"))
        eventually(lambda: api.read_namespaced_pod("urgent", "default").spec.node_name)
        eventually(lambda: api.read_namespaced_pod("huge", "default").status.conditions)
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "no permission to read" not in log
    lines = map(json.loads, audit.read_text().splitlines())
    account = "system:serviceaccount:fairlead:fairlead"
    sent = [line for line in lines if line["user"]["username"] == account]
    verbs = {line["verb"] for line in sent}
    assert verbs >= {"watch", "create", "patch", "delete", "get", "update"}
    assert [line for line in sent if line["responseStatus"]["code"] == 403] == []


@pytest.mark.parametrize(
    ("verb", "resource"), [("list", "secrets"), ("create", "pods"), ("patch", "nodes")]
)
def test_the_roles_permit_nothing_else(cluster, verb, resource):
    review = {
        "spec": {
            "user": "system:serviceaccount:fairlead:fairlead",
            "resourceAttributes": {"verb": verb, "resource": resource, "namespace": "default"},
        }
    }
    found = client.AuthorizationV1Api().create_subject_access_review(review)
    assert not found.status.allowed


def open_url(url):
    context = ssl._create_unverified_context()
    with urllib.request.urlopen(url, context=context) as answer:
        return answer.status


def test_the_container_starts_with_its_arguments_and_answers_its_probes(cluster, tmp_path):
    """The address, the connection and the ConfigMap's folder differ from those of a pod."""
    path, _ = cluster
    by_kind = {one["kind"]: one for one in manifests()}
    settings = by_kind["ConfigMap"]["data"]["scheduler.yaml"]
    (tmp_path / "scheduler.yaml").write_text(settings)
    (container,) = by_kind["Deployment"]["spec"]["template"]["spec"]["containers"]
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    (mount,) = (one["mountPath"] for one in container["volumeMounts"] if one["name"] == "config")
    replaced = {
        "--in-cluster": f"--kubeconfig={as_service_account(path, tmp_path)}",
        f"--config={mount}/scheduler.yaml": f"--config={tmp_path}/scheduler.yaml",
        f"--listen=0.0.0.0:{ports['https']}": "--listen=127.0.0.1:0",
    }
    assert replaced.keys() <= set(container["args"])
    arguments = [replaced.get(one, one) for one in container["args"]]
    environment = {**os.environ, **{one["name"]: "pod-0" for one in container["env"]}}
    command = [sys.executable, "-m", "fairlead.cli", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        url = process.stderr.readline().rpartition("serving on ")[2].strip()
        assert "running in" in process.stderr.readline()
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            request = container[name]["httpGet"]
            assert (request["port"], request["scheme"]) == ("https", "HTTPS")
            assert open_url(f"{url}{request['path']}") == 200
        lease = client.CoordinationV1Api().read_namespaced_lease("fairlead", "fairlead")
        assert lease.spec.holder_identity.startswith("pod-0")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_pod_starts_again_when_the_scheduler_name_changes():
    """The scheduler reads its configuration only when it starts."""
    (deployment,) = (one for one in manifests() if one["kind"] == "Deployment")
    annotations = deployment["spec"]["template"]["metadata"]["annotations"]
    chart = (DEPLOY / "helm" / "fairlead" / "templates" / "fairlead.yaml").read_text()
    assert annotations == {"scheduler-name": "fairlead"}
    assert 'annotations: {scheduler-name: "{{ .Values.schedulerName }}"}' in chart
