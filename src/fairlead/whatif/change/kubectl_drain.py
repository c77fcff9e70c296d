"""Checks the pods of drained nodes as `kubectl drain` does before it evicts any of them.

    --ignore-daemonsets       for pods of DaemonSets, which stay on the node
    --delete-emptydir-data    for pods with an emptyDir volume; its data is lost
    --force                   for pods without a controller; nothing creates them again

If a flag that a pod needs is missing, kubectl refuses to drain the pod's node. kubectl cordons
every node first, so a refused node stays cordoned. Finished pods need no flag, and mirror pods are
skipped. A finished pod of a DaemonSet counts like a running pod, because the DaemonSet soon
replaces it with a running pod.

upstream: staging/src/k8s.io/kubectl/pkg/drain/filters.go, drain.go:errors
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import (
    controller_of,
    is_guard,
    is_static,
    is_terminal,
)
from fairlead.apiserver.kind import DAEMON_SET
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.served_kind import is_custom

IGNORE_DAEMON_SETS: Final = "--ignore-daemonsets"
DELETE_EMPTY_DIR: Final = "--delete-emptydir-data"
FORCE: Final = "--force"
# The texts of kubectl. In messages, each text follows "cannot delete". The last text also contains
# these words, so its message has them twice, like kubectl's.
_FATAL: Final = {
    IGNORE_DAEMON_SETS: "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)",
    DELETE_EMPTY_DIR: "Pods with local storage (use --delete-emptydir-data to override)",
    FORCE: "cannot delete Pods that declare no controller (use --force to override)",
}


class DrainFlag(Struct, frozen=True):
    """A flag that `kubectl drain` needs, and the pods that make it necessary.

    `guards` are the guard pods of OpenShift among `pods` (see `is_guard`).
    """

    flag: str
    pods: tuple[str, ...]
    guards: tuple[str, ...] = ()

    @property
    def lost(self) -> tuple[str, ...]:
        """The pods that nothing creates again after the drain."""
        is_force = self.flag == FORCE  # pods without a controller need this flag
        return tuple(pod for pod in self.pods if is_force and pod not in self.guards)


class RefusedDrain(Struct, frozen=True):
    """A node that `kubectl drain` refuses to drain; `causes` contains (reason, pod names)."""

    node: str
    causes: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def message(self) -> str:
        """The error as kubectl prints it, with every pod."""
        errors = [f"cannot delete {why}: {', '.join(pods)}" for why, pods in self.causes]
        return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"

    @property
    def summary(self) -> str:
        """The error message, which names only the first pod of each reason."""
        return "; ".join(
            f"cannot delete {why}: {pods[0]}"
            + (f" and {len(pods) - 1:,} more" if len(pods) > 1 else "")
            for why, pods in self.causes
        )


class KubectlDrain(Struct, frozen=True):
    """The result of kubectl's checks of `nodes`: the flags `needed`, and the nodes `refused`."""

    nodes: tuple[str, ...] = ()
    needed: tuple[DrainFlag, ...] = ()
    refused: tuple[RefusedDrain, ...] = ()


NO_DRAIN: Final = KubectlDrain()


class DrainCheck(Struct, frozen=True):
    """A check of the pods of `node` when its drain begins.

    `flags` are the flags given to kubectl. If `flags` is None, the check finds the flags that
    kubectl needs, and the drain is not refused.
    """

    node: str
    flags: tuple[str, ...] | None = None


def kubectl_drain(
    nodes: Iterable[str], inventory: Inventory, flags: Iterable[str] | None
) -> KubectlDrain:
    """Return the result of kubectl's checks of `nodes`, whose pods are in `inventory`.

    `flags` are the flags given to kubectl. If `flags` is None, the result has no refused drains.
    """
    by_node: dict[str, list[Pod]] = {node: [] for node in nodes}
    for pod in inventory.pods_on(by_node):
        by_node[pod.spec.node_name].append(pod)
    daemon_sets = {one.ref.key for one in inventory.of_kind(DAEMON_SET)}
    return check_pods(by_node, daemon_sets, flags)


def check_pods(
    pods_of_nodes: Mapping[str, Iterable[Pod]],
    daemon_sets: Collection[str],
    flags: Iterable[str] | None,
) -> KubectlDrain:
    """Return the result of kubectl's checks of the pods of each node in `pods_of_nodes`.

    `daemon_sets` are the keys (`namespace/name`) of the existing DaemonSets. `flags` are the flags
    given to kubectl. If `flags` is None, the result has no refused drains.
    """
    by_node = {node: sorted(pods, key=lambda pod: pod.key) for node, pods in pods_of_nodes.items()}
    needed = needed_flags(
        pod for pods in by_node.values() for pod in pods if not _absent_daemon_set(pod, daemon_sets)
    )
    if flags is None:
        return KubectlDrain(tuple(by_node), needed)
    given = frozenset(flags)
    refused = tuple(
        RefusedDrain(node, causes)
        for node, pods in by_node.items()
        if (causes := tuple(_causes(_pods_by_problem(pods, daemon_sets), given)))
    )
    return KubectlDrain(tuple(by_node), needed, refused)


def with_daemon_set_pods(drain: KubectlDrain, pods: Iterable[str]) -> KubectlDrain:
    """Return `drain`; if it lacks the flag --ignore-daemonsets, add the flag with `pods`.

    `pods` are the keys of pods that DaemonSets create on the nodes of `drain` after the dump. These
    pods stay on the nodes, so the real drain needs the flag for them, too. If `pods` is empty,
    `drain` is returned unchanged.
    """
    created = tuple(sorted(pods))
    if not created or any(one.flag == IGNORE_DAEMON_SETS for one in drain.needed):
        return drain
    return replace(drain, needed=(DrainFlag(IGNORE_DAEMON_SETS, created), *drain.needed))


def needed_flags(pods: Iterable[Pod]) -> tuple[DrainFlag, ...]:
    """Return the flags that a drain of `pods` needs.

    The DaemonSets of all pods are assumed to exist. A pod with an emptyDir and without a controller
    needs two flags, although kubectl first reports only one.
    """
    by_flag: dict[str, list[Pod]] = {flag: [] for flag in _FATAL}
    for pod in pods:
        for flag in _flags_for(pod):
            by_flag[flag].append(pod)
    return tuple(
        DrainFlag(
            flag,
            tuple(pod.key for pod in found),
            tuple(pod.key for pod in found if is_guard(pod)),
        )
        for flag, found in by_flag.items()
        if found
    )


def _flags_for(pod: Pod) -> Iterator[str]:
    if _daemon_set_of(pod):
        yield IGNORE_DAEMON_SETS
        return
    if is_terminal(pod) or is_static(pod):
        return
    if any(volume.empty_dir is not None for volume in pod.spec.volumes):
        yield DELETE_EMPTY_DIR
    if controller_of(pod.metadata) is None:
        yield FORCE


def _pods_by_problem(pods: Iterable[Pod], daemon_sets: Collection[str]) -> dict[str, list[str]]:
    """Return the names of `pods`, grouped by the problem that kubectl reports for them.

    A problem is a missing flag, or the error about a DaemonSet that is not found.
    """
    problems: dict[str, list[str]] = {}
    for pod in pods:
        absent = _absent_daemon_set(pod, daemon_sets)
        if absent and is_terminal(pod):
            continue
        for problem in [absent] if absent else _flags_for(pod):
            problems.setdefault(problem, []).append(pod.key)
    return problems


def _absent_daemon_set(pod: Pod, daemon_sets: Collection[str]) -> str:
    """Return kubectl's error if the DaemonSet of `pod` is not in `daemon_sets`; "" otherwise.

    The result is also "" if `daemon_sets` is empty: a dump without DaemonSets may be incomplete.
    """
    name = _daemon_set_of(pod)
    if not name or not daemon_sets or f"{pod.metadata.namespace}/{name}" in daemon_sets:
        return ""
    return f'daemonsets.apps "{name}" not found'


def _daemon_set_of(pod: Pod) -> str:
    """Return the name of the DaemonSet of `pod`; "" if the pod has no DaemonSet.

    A DaemonSet of another API group, such as OpenKruise's, is ignored. kubectl 1.36 treats the pods
    of such a DaemonSet like pods without a DaemonSet. kubectl 1.32 looks for the owner in the group
    `apps`, and reports that the DaemonSet does not exist (filters.go: daemonSetFilter).
    """
    owner = controller_of(pod.metadata)
    if owner is None or owner.kind != DAEMON_SET.kind or is_custom(owner.api_version):
        return ""
    return owner.name


def _causes(
    problems: Mapping[str, list[str]], given: frozenset[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (reason, pods) for each reason not to drain a node; each pod occurs at most once.

    `problems` maps each problem to the pods that have it; `given` are the flags given to kubectl.
    """
    named: set[str] = set()
    for problem, pods in sorted(problems.items(), key=lambda item: _order(item[0])):
        is_overridden = problem in given or (problem not in _FATAL and FORCE in given)
        kept = tuple(pod for pod in pods if pod not in named)
        if not is_overridden and kept:
            named.update(kept)
            yield _FATAL.get(problem, problem), kept


def _order(problem: str) -> int:
    return list(_FATAL).index(problem) if problem in _FATAL else -1
