"""Tests the operator in a cluster of six nodes in three zones: `pytest examples/operator`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from fairlead.testing import RefusedError

HERE = Path(__file__).parent
OPERATOR = HERE / "website_operator.py"
SITE = """
apiVersion: example.com/v1
kind: Website
metadata: {name: shop}
spec: {image: "shop:1", copies: 6}
"""

pytestmark = pytest.mark.fairlead_cluster(nodes=6, zones=3, paused=True)


@pytest.fixture
def cluster(fairlead_cluster):
    """Yield a cluster that serves Websites, with the operator running as a separate process."""
    fairlead_cluster.apply(HERE / "website.yaml")
    command = [sys.executable, "-m", "kopf", "run", "--namespace=default", "--standalone"]
    environment = {**os.environ, "KUBECONFIG": str(fairlead_cluster.kubeconfig)}
    with subprocess.Popen([*command, str(OPERATOR)], env=environment) as operator:
        try:
            fairlead_cluster.expect_watched("website")
            yield fairlead_cluster
        finally:
            operator.terminate()


def ready(cluster):
    site = cluster.get("website", "shop")
    return (site or {}).get("status", {}).get("ready", 0)


def zones_of_pods(cluster):
    zone_of = {
        node["metadata"]["name"]: node["metadata"]["labels"]["topology.kubernetes.io/zone"]
        for node in cluster.list("node")
    }
    running = (pod for pod in cluster.list("pod") if "deletionTimestamp" not in pod["metadata"])
    return Counter(zone_of[pod["spec"]["nodeName"]] for pod in running)


def test_a_website_is_spread_over_zones(cluster) -> None:
    cluster.apply(SITE)
    cluster.expect(lambda: ready(cluster) == 6, what="that all copies are ready")
    assert set(zones_of_pods(cluster).values()) == {2}


def test_a_website_survives_the_failure_of_a_zone(cluster) -> None:
    """The Website loses the two copies in the failed zone; they are evicted only after 5m50s."""
    cluster.apply(SITE)
    cluster.expect(lambda: ready(cluster) == 6)
    cluster.fail_zone("zone-a")
    cluster.expect(lambda: ready(cluster) == 4, within="2m", what="that two copies are missed")
    cluster.advance("4m")
    assert ready(cluster) == 4


def test_a_new_image_is_rolled_out(cluster) -> None:
    cluster.apply(SITE)
    cluster.expect(lambda: ready(cluster) == 6)
    cluster.apply(SITE.replace("shop:1", "shop:2"))

    def images():
        return {pod["spec"]["containers"][0]["image"] for pod in cluster.list("pod")}

    cluster.expect(lambda: images() == {"shop:2"}, within="10m", what="the rollout")


def test_a_website_leaves_a_note(cluster) -> None:
    """A finalizer delays the deletion until the note is written. The Deployment is deleted, too."""
    cluster.apply(SITE)
    cluster.expect(lambda: ready(cluster) == 6)
    cluster.delete("website", "shop")
    cluster.expect_gone("website", "shop")
    cluster.expect_gone("deployment", "shop")
    assert cluster.get("configmap", "shop-was-here") is not None


def test_an_invalid_website_is_refused(fairlead_cluster) -> None:
    """The schema refuses the Website before the operator sees it, so no operator runs here."""
    fairlead_cluster.apply(HERE / "website.yaml")
    with pytest.raises(RefusedError, match="should be less than or equal to 50"):
        fairlead_cluster.apply(SITE.replace("6", "600"))
