"""start_cluster: starts a TestCluster, with or without pytest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from os import PathLike
from pathlib import Path

from fairlead.testing.cluster.cluster_thread import running
from fairlead.testing.cluster.test_cluster import TestCluster, require_speed
from fairlead.testing.cluster.wait import PATIENCE_S_DEFAULT
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.local.cluster import PARTS, LocalOptions


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

    Clients that watch the cluster need real time to react to a change. Therefore a method such
    as `expect_running` waits for a reaction before it advances the clock. If the clock will advance
    by 10 seconds or more at once, the method waits up to `patience_s` real seconds. If no event is
    due, the method waits up to 10 real seconds, or up to `patience_s` if that is longer.

    The parts in `without` are not started, because the test replaces them. Possible parts are
    kubelet, workloads, volumes, provisioner, disruption, node-lifecycle, scheduler, metrics and
    storage-class (the default StorageClass). Raises ValueError or TypeError for invalid arguments.
    """
    _require_types(nodes=nodes, zones=zones, paused=paused, without=without)
    if nodes < 0 or not 1 <= zones <= max(1, nodes):
        raise ValueError(f"{nodes} nodes in {zones} zones: every zone needs a node")
    require_speed(speed)
    if not isinstance(patience_s, int | float):
        raise TypeError(f"patience_s {patience_s!r} is not a number")
    if not patience_s >= 0:
        raise ValueError(f"patience_s {patience_s} is not a number of at least 0")
    for part in without:
        if part not in PARTS:
            raise ValueError(f"without {part!r}: must be among {', '.join(PARTS)}")
    options = LocalOptions(nodes=nodes, zones=zones, without=tuple(without))
    return _started(options, LocalClock(speed=speed, paused=paused), Path(folder), patience_s)


def _require_types(*, nodes: object, zones: object, paused: object, without: object) -> None:
    """Raise TypeError if an argument of `start_cluster` has a wrong type."""
    for name, value in (("nodes", nodes), ("zones", zones)):
        if not isinstance(value, int):
            raise TypeError(f"{name} {value!r} is not an integer")
    if not isinstance(paused, bool):
        raise TypeError(f"paused {paused!r} is not True or False")
    if isinstance(without, str):  # otherwise, each character would be a part
        raise TypeError(f"without takes a list such as [{without!r}], not the text {without!r}")
    if not isinstance(without, Iterable):
        raise TypeError(f"without takes a list such as ['scheduler'], not {without!r}")


@contextmanager
def _started(
    options: LocalOptions, clock: LocalClock, folder: Path, patience_s: float
) -> Iterator[TestCluster]:
    with running(options, clock, folder) as thread:
        yield TestCluster(thread, patience_s)
