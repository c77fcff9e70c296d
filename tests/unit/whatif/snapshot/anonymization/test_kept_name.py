"""The kept names of an anonymised snapshot that users have to check."""

from __future__ import annotations

from fairlead.whatif.snapshot.anonymization.anonymizer import anonymised
from fairlead.whatif.snapshot.anonymization.kept_name import kept_names


def test_names_that_kubernetes_does_not_define_are_listed():
    resources = {"cpu": "1", "acme.com/fpga": "1", "hugepages-2Mi": "0"}
    owner = {"apiVersion": "platform.acme.com/v1", "kind": "App", "name": "a", "uid": "u"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "ownerReferences": [owner]},
        "spec": {
            "schedulerName": "acme-scheduler",
            "containers": [{"name": "c", "resources": {"requests": resources}}],
        },
    }
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "s"},
        "provisioner": "acme.com/nfs",
    }
    assert kept_names(anonymised([pod, storage]).objects) == {
        "API groups": ["platform.acme.com"],
        "drivers": ["acme.com/nfs"],
        "resources": ["acme.com/fpga"],
        "schedulers": ["acme-scheduler"],
    }


def test_names_of_kubernetes_are_not_listed():
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "w"},
        "spec": {
            "template": {
                "spec": {
                    "schedulerName": "default-scheduler",
                    "containers": [
                        {"resources": {"requests": {"cpu": "1", "node.kubernetes.io/x": "1"}}}
                    ],
                }
            }
        },
    }
    storage = {"kind": "StorageClass", "provisioner": "kubernetes.io/no-provisioner"}
    assert kept_names([workload, storage]) == {}
