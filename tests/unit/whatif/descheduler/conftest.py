"""Clusters for the descheduler: nodes of four CPUs in two zones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.whatif.descheduler.policy import read_policy
from fairlead.whatif.descheduler.run import DescheduleResult, run_policy
from fairlead.whatif.input.document import Document
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest_reader import manifests

DAY = 86_400 * 10**9
NOW = 20_000 * DAY
ZONE = "topology.kubernetes.io/zone"


def node(name: str, zone: str = "a", *, taints: Sequence[Any] = (), **spec: Any) -> dict[str, Any]:
    """A Ready node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: zone, "kubernetes.io/hostname": name}},
        "spec": {"taints": list(taints), **spec},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(
    name: str,
    where: str,
    *,
    owner: str = "web",
    cpu: str = "500m",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return a running pod of a ReplicaSet; `owner` "" means no owner."""
    owners = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}",
              "controller": True}  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": labels or {"app": owner or name},
            "annotations": annotations or {},
            "creationTimestamp": "2024-10-01T00:00:00Z",
            "ownerReferences": [owners] if owner else [],
        },
        "spec": {
            "nodeName": where,
            "containers": [{"name": "main", "image": "web",
                            "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}],
            **spec,
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            **(status or {}),
        },
    }  # fmt: skip


Run = Callable[..., DescheduleResult]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs one strategy of a policy over objects: `run(objects, "PodLifeTime", {...})`."""

    def ran(
        objects: Sequence[Any],
        name: str,
        args: Any = None,
        evictor: Any = None,
        point: str = "deschedule",
        **policy: Any,
    ) -> DescheduleResult:
        file = tmp_path / "policy.yaml"
        configs = [{"name": name, "args": args or {}},
                   {"name": "DefaultEvictor", "args": evictor or {}}]  # fmt: skip
        profile = {"pluginConfig": configs, "plugins": {point: {"enabled": [name]}}}
        content = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy",
                   "profiles": [profile], **policy}  # fmt: skip
        file.write_text(yaml.safe_dump(content))
        found = manifests([Document("dump", one) for one in objects])
        return run_policy(read_policy(str(file)), Inventory(found), NOW)

    return ran


def names(result: DescheduleResult) -> list[str]:
    """Return the names of the evicted pods, in order."""
    return [one.pod.metadata.name for one in result.evictions if not one.refused_by]
