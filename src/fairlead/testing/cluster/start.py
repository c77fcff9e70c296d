"""start_cluster: starts a TestCluster, with or without pytest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from os import PathLike
from pathlib import Path

from fairlead.testing.cluster.cluster_thread import running
from fairlead.testing.cluster.test_cluster import TestCluster
from fairlead.testing.cluster.wait import PATIENCE_S_DEFAULT
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.local.cluster import PARTS, LocalOptions
from fairlead.worlds.local.server.clock_control import SPEED_MAX, SPEED_MIN, SPEED_RANGE


def start_cluster(  # noqa: PLR0913 - the arguments of the marker
    folder: str | PathLike[str],
    *,
    nodes: int = 3,
    zones: int = 1,
    speed: float = 1.0,
    paused: bool = False,
    without: Sequence[str] = (),
    patience_s: float = PATIENCE_S_DEFAULT,
) -> AbstractContextManager[TestCluster]:
    """Return a context manager that runs a new cluster; its kubeconfig and keys are in `folder`.

    The cluster has `nodes` simulated nodes, spread over `zones` zones. Its clock starts at the
    current time, and advances by `speed` simulated seconds per real second. If `paused` is set, the
    clock is stopped.

    Clients that watch the cluster need real time to react to a change. Before an expectation
    advances the clock by 10 seconds or more at once, it waits for such a reaction: up to
    `patience_s` real seconds, or longer if no event is due.

    The parts in `without` are not started, because the test replaces them. Possible parts are
    kubelet, workloads, volumes, provisioner, disruption, node-lifecycle, scheduler and metrics.
    Raises ValueError or TypeError for invalid arguments.
    """
    if nodes < 0 or not 1 <= zones <= max(1, nodes):
        raise ValueError(f"{nodes} nodes in {zones} zones: every zone needs a node")
    if not SPEED_MIN <= speed <= SPEED_MAX:
        raise ValueError(f"speed {SPEED_RANGE}, not {speed}")
    if not isinstance(patience_s, int | float):
        raise TypeError(f"patience_s {patience_s!r} is not a number")
    if not patience_s >= 0:
        raise ValueError(f"patience_s {patience_s} is not a number of at least 0")
    if isinstance(without, str):  # otherwise, each character would be a part
        raise TypeError(f"without takes a list such as [{without!r}], not the text {without!r}")
    for part in without:
        if part not in PARTS:
            raise ValueError(f"without {part!r}: must be among {', '.join(PARTS)}")
    options = LocalOptions(nodes=nodes, zones=zones, without=tuple(without))
    return _started(options, LocalClock(speed=speed, paused=paused), Path(folder), patience_s)


@contextmanager
def _started(
    options: LocalOptions, clock: LocalClock, folder: Path, patience_s: float
) -> Iterator[TestCluster]:
    with running(options, clock, folder) as thread:
        yield TestCluster(thread, patience_s)
