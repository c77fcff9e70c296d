"""The kubectl command that dumps the built-in kinds on which answers depend."""

from __future__ import annotations

from typing import Final

# kubectl refuses the whole list if one kind is unknown, so these are kinds of every cluster.
RESOURCES: Final = (
    "nodes", "leases", "namespaces", "serviceaccounts", "pods", "deployments", "replicasets",
    "replicationcontrollers", "statefulsets", "daemonsets", "jobs", "cronjobs",
    "poddisruptionbudgets", "priorityclasses", "limitranges", "resourcequotas", "runtimeclasses",
    "persistentvolumeclaims", "persistentvolumes", "storageclasses", "csinodes", "csidrivers",
    "csistoragecapacities", "horizontalpodautoscalers",
)  # fmt: skip


def dump_command(file: str) -> str:
    """Return the command, as one line, that writes the dump to `file`."""
    return f"kubectl get -A -o json {','.join(RESOURCES)} > {file}"
