"""An operator that turns a Website into a Deployment spread over zones, and reports its status.

Run it against any cluster with `kopf run website_operator.py`.
"""

from __future__ import annotations

import os

import kopf
from kubernetes import client, config

ZONE = "topology.kubernetes.io/zone"


@kopf.on.startup()
def connect(settings: kopf.OperatorSettings, **_: object) -> None:
    """Connect to the cluster of the kubeconfig that kubectl would use."""
    config.load_kube_config(os.environ.get("KUBECONFIG"))
    settings.posting.enabled = False
    settings.persistence.finalizer = "example.com/website"


@kopf.on.create("websites.example.com")
@kopf.on.update("websites.example.com", field="spec")
def make(name: str, namespace: str, body: kopf.Body, **_: object) -> None:
    """Apply the Deployment of the Website."""
    wanted = deployment(name, body["spec"])
    kopf.adopt(wanted, owner=body)
    client.AppsV1Api().patch_namespaced_deployment(
        name,
        namespace,
        wanted,
        field_manager="website-operator",
        force=True,
        _content_type="application/apply-patch+yaml",
    )


@kopf.on.delete("websites.example.com")
def say_goodbye(name: str, namespace: str, **_: object) -> None:
    """Create a note before the Website is deleted; a finalizer delays the deletion until then."""
    note = {"metadata": {"name": f"{name}-was-here"}}
    client.CoreV1Api().create_namespaced_config_map(namespace, note)


@kopf.on.event("deployments.apps", labels={"website": kopf.PRESENT})
def tell(event: dict, name: str, namespace: str, status: dict, **_: object) -> None:
    """Write the number of ready copies to the Website's status."""
    if event["type"] == "DELETED":
        return
    ready = {"status": {"ready": status.get("readyReplicas", 0)}}
    try:
        client.CustomObjectsApi().patch_namespaced_custom_object_status(
            "example.com", "v1", namespace, "websites", name, ready
        )
    except client.ApiException as refusal:
        if refusal.status != 404:
            raise


def deployment(name: str, spec: dict) -> dict:
    """Return the Deployment of the Website `name`, whose spec is `spec`."""
    labels = {"website": name}
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": spec["copies"],
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "topologySpreadConstraints": [spread],
                    "containers": [{"name": "site", "image": spec["image"]}],
                },
            },
        },
    }
