"""Phrases that several sentences of a verdict share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome
from fairlead.whatif.outcome.workload import POD

NAMES_MAX: Final = 2
NEGATIVE: Final = " (negative priority)"  # follows the pods that have one


def pods_of(pods: Sequence[PodEnd], what: str = "pod") -> str:
    """Return a text such as `3 pods of deploy/store/web`, or the name of a single bare pod.

    `what` is the noun to count, in the singular.
    """
    refs = list(dict.fromkeys(pod.workload for pod in pods))
    if len(refs) == 1 and refs[0].kind == POD:
        return str(refs[0])
    owned = [ref for ref in refs if ref.kind != POD]
    whose = (
        [f"of {owned[0]}" if len(owned) == 1 else f"of {len(owned):,} workloads"] if owned else []
    )
    bare = ["without a controller"] if len(owned) < len(refs) else []
    return f"{counted(len(pods), what)} {' or '.join([*whose, *bare])}"


def listed_names(names: Sequence[str]) -> str:
    """Return the first NAMES_MAX of `names` as text, and how many more there are."""
    return listed(names, NAMES_MAX)


def counted_pods(count: int) -> str:
    """Return text such as "1 pod" or "1,200 pods"."""
    return counted(count, "pod")


def plural(count: int, what: str) -> str:
    """Return `what`, with an "s" unless `count` is 1."""
    return what if count == 1 else f"{what}s"


def time_words(duration: DurationNs) -> str:
    """Return `duration` as text; a negative duration counts as 0."""
    return for_readers(max(duration, 0))


def end_words(pods: Sequence[PodEnd], verb: str, run: RunOutcome) -> str:
    """Return a text such as "run and complete; the last one after 5m".

    `pods` have ended in `run`, and `verb` says how, here "complete". If all of them existed already
    when the run began, the text does not say that they run.
    """
    after = time_words(run.after_start(max(pod.ended_at or 0 for pod in pods)))
    is_known = all(pod.is_initial for pod in pods)
    if len(pods) == 1:
        return f"{'' if is_known else 'runs and '}{verb}s after {after}"
    return f"{'' if is_known else 'run and '}{verb}; the last one after {after}"


def keys_of(pods: Iterable[PodEnd]) -> list[str]:
    """Return the keys (namespace/name) of `pods`."""
    return [pod.key for pod in pods]


def of_other_nodes(pods: Iterable[PodEnd], other: RunOutcome) -> list[PodEnd]:
    """Return those of `pods` whose own nodes do not exist in the run `other`.

    Such pods are DaemonSet pods and static pods, which come and go with their nodes.
    """
    return [pod for pod in pods if pod.own_node and pod.own_node not in other.node_names]


def pods_of_nodes(pods: Sequence[PodEnd], which: str = "") -> str:
    """Return text such as "5 DaemonSet pods"; `pods` are pods of DaemonSets and static pods.

    `which` is text that is inserted after the number.
    """
    daemons = sum(pod.workload.is_daemon_set for pod in pods)
    kinds = ["DaemonSet"] if daemons else []
    kinds += ["static"] if daemons < len(pods) else []
    return counted(len(pods), f"{which}{' or '.join(kinds)} pod")
