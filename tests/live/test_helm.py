"""The Helm chart, installed, upgraded and removed by Helm itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.up_process import up

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "fairlead"
HELM = shutil.which("helm", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        HELM is None and not os.environ.get("CI"), reason="needs helm, which has no package here"
    ),
]


@pytest.fixture(scope="module")
def helm(tmp_path_factory):
    """Runs Helm with arguments in a cluster of three nodes; returns its output."""
    folder = tmp_path_factory.mktemp("helm")
    kubeconfig = folder / "kubeconfig"
    homes = {
        f"HELM_{name}_HOME": str(folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA")
    }
    environment = {**os.environ, **homes, "KUBECONFIG": str(kubeconfig)}

    def run(*arguments, status=0):
        done = subprocess.run(
            [HELM, *arguments],
            check=False,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == status, done.stderr
        return done.stderr if status else done.stdout

    with up("--nodes", "3", "--kubeconfig", str(kubeconfig), paused=False):
        yield run


def objects(text):
    return {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one
        for one in yaml.safe_load_all(text)
        if one
    }


def test_helm_lint_reports_no_problems(helm):
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


def test_the_chart_renders_the_manifests_of_deploy(helm):
    plain = objects((CHART.parents[1] / "manifests" / "fairlead.yaml").read_text())
    del plain["Namespace", "", "fairlead"]  # `helm install --create-namespace` creates it
    assert objects(helm("template", "fairlead", str(CHART), "-n", "fairlead")) == plain


def test_a_release_in_another_namespace_names_that_namespace(helm):
    values = "serviceMonitor=true,schedulerName=my-scheduler"
    found = objects(helm("template", "f", str(CHART), "-n", "other", "--set", values))
    assert {namespace for _, namespace, _ in found} == {"", "other"}
    assert ("ServiceMonitor", "other", "fairlead") in found
    binding = found["ClusterRoleBinding", "", "fairlead-scheduler"]
    assert binding["subjects"][0]["namespace"] == "other"
    config = found["ConfigMap", "other", "fairlead"]["data"]["scheduler.yaml"]
    assert yaml.safe_load(config)["profiles"][0]["schedulerName"] == "my-scheduler"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("replicas=two", "replicas: Invalid type. Expected: integer, given: string"),
        ("replica=3", "Additional property replica is not allowed"),
        ("serviceMonitor=maybe", "serviceMonitor: Invalid type. Expected: boolean, given: string"),
        ("schedulerName=", "schedulerName: String length must be greater than or equal to 1"),
    ],
)
def test_an_invalid_value_is_refused(helm, value, problem):
    assert problem in helm("template", "f", str(CHART), "--set", value, status=1)


def test_a_release_is_installed_upgraded_rolled_back_and_removed(helm):
    own = ("-n", "fairlead")

    def status():
        found = json.loads(helm("status", "fairlead", *own, "-o", "json"))
        return found["version"], found["info"]["status"]

    wait = ("--wait", "--timeout", "180s")
    helm("install", "fairlead", str(CHART), *own, "--create-namespace", *wait)
    assert status() == (1, "deployed")
    helm("upgrade", "fairlead", str(CHART), *own, "--set", "replicas=3", *wait)
    assert status() == (2, "deployed")
    helm("rollback", "fairlead", "1", *own, *wait)
    assert status() == (3, "deployed")
    helm("uninstall", "fairlead", *own, "--wait")
    assert json.loads(helm("list", "--all-namespaces", "-o", "json")) == []
