"""Refuses a workload in a file if the API server would not create the workload."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from fairlead.apiserver.registry.simulation import SIMULATION
from fairlead.whatif.snapshot.api_refusal import refusal_of
from fairlead.whatif.snapshot.manifest import Manifest

WORKLOADS: Final = (
    DEPLOYMENT, STATEFUL_SET, DAEMON_SET, REPLICA_SET, REPLICATION_CONTROLLER, JOB, CRON_JOB,
)  # fmt: skip
"""The kinds of the built-in workloads."""


def refuse_invalid_workloads(written: Iterable[Manifest]) -> None:
    """Raise InputError if a workload in `written`, the objects of files, is invalid.

    Some commands read only the pod template of a workload. Without this check, such commands would
    answer a question about pods that cannot exist. Pods are not checked here: the command creates
    them, and the creation of an invalid pod is refused.
    """
    for one in written:
        if one.kind not in WORKLOADS:
            continue
        meta = {**one.value["metadata"], "namespace": one.ref.namespace}
        try:
            obj = SIMULATION.default(one.kind, {**one.value, "metadata": meta})
            SIMULATION.validator.validate(one.kind, SIMULATION.rules(one.kind), obj)
        except ApiError as refused:
            raise refusal_of(one.source, one.title, refused) from None
