"""start_cluster: a TestCluster without pytest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fairlead.testing.cluster_thread import running
from fairlead.testing.local_cluster import TestCluster
from fairlead.worlds.local.clock import SteeredClock
from fairlead.worlds.local.cluster import LocalOptions


@contextmanager
def start_cluster(
    folder: Path,
    *,
    nodes: int = 3,
    zones: int = 1,
    speed: float = 1.0,
    paused: bool = False,
    without: Sequence[str] = (),
) -> Iterator[TestCluster]:
    """A fresh cluster while the block lasts; its kubeconfig and keys are in `folder`.

    `without` names parts to leave out, so that something else can take their place: kubelet,
    workloads, volumes, disruption, node-lifecycle, scheduler.
    """
    options = LocalOptions(nodes=nodes, zones=zones, without=tuple(without))
    clock = SteeredClock(speed=speed, paused=paused)
    with running(options, clock, folder) as thread:
        yield TestCluster(thread)
