"""A billion requested pods are created in batches, and other requests do not wait for them."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode
from fairlead.engine.core.command import CreateObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import CommandSucceeded, ObjectChanged, ObjectsLoaded
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.pod_control.pod_set import BURST_REPLICAS

T0 = seconds(1_000)
BILLIONS = (1 << 31) - 1


def creations(commands):
    return [command for command in commands if isinstance(command, CreateObject)]


@pytest.mark.parametrize(
    ("kind", "version", "spec"),
    [
        ("ReplicaSet", "apps/v1", {"replicas": BILLIONS}),
        ("StatefulSet", "apps/v1", {"replicas": BILLIONS, "podManagementPolicy": "Parallel"}),
        ("Job", "batch/v1", {"parallelism": BILLIONS, "completions": BILLIONS}),
        (
            "Job",
            "batch/v1",
            {"parallelism": 9_999, "completions": BILLIONS, "completionMode": "Indexed"},
        ),
    ],
    ids=["ReplicaSet", "StatefulSet", "Job", "indexed Job"],
)
def test_the_batches_of_creations_are_limited_as_in_upstream(build, kind, version, spec):
    selector = None if kind == "Job" else {"matchLabels": {"app": "web"}}
    owner = build.owned(kind, "web", uid="u", version=version, selector=selector, **spec)
    workloads = Workloads()
    [first] = creations(workloads.handle(ObjectsLoaded([decode(owner)]), T0))
    others = creations(workloads.handle(CommandSucceeded(first), T0))
    assert len(others) == BURST_REPLICAS - 1
    more = creations(workloads.handle(ObjectChanged(decode(dict(first.manifest))), T0))
    assert len(more) == 1
    assert len({one.target.name for one in (first, *others, *more)}) == BURST_REPLICAS + 1
