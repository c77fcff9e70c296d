"""Parses the value of `--scale` (`deploy/x=20`): a workload and its new number of replicas."""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.kind import (
    DEPLOYMENT,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from fairlead.engine.core.command import PatchObject
from fairlead.whatif.change import commands
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.inventory import Inventory

REPLICAS_MAX: Final = 1_000_000

_SCALABLE: Final = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER)


def parse_scale(source: str, text: str, inventory: Inventory, namespace: str = "") -> PatchObject:
    """Return the command for `text` (`deploy/x=20`, `sts/ns/x=3`).

    `namespace` is used if `text` contains no namespace. Raises InputError; its message names
    `source`, an option or file.
    """
    target, sign, count = text.rpartition("=")
    if not sign:
        raise InputError(source, f"{text!r} is not WORKLOAD/NAME=REPLICAS, such as deploy/web=20")
    workload = inventory.find(source, target, namespace, _SCALABLE)
    if workload.kind not in _SCALABLE:
        known = ", ".join(kind.kind for kind in _SCALABLE)
        raise InputError(source, f"a {workload.kind.kind} cannot be scaled; only {known}")
    return commands.scale(workload.ref, _replicas(source, workload.title, count))


def _replicas(source: str, workload: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise InputError(source, f"{text!r} is not a number of replicas", object_name=workload)
    if len(text) > len(str(REPLICAS_MAX)) or int(text) > REPLICAS_MAX:
        problem = f"{text} replicas are more than {REPLICAS_MAX}"
        raise InputError(source, problem, object_name=workload)
    return int(text)
