"""KeptEnds: the list of pods at an instant of a run, reused for the list at the end of the run.

Both runs of a what-if begin with the same pods and change few of them. So the pods are listed once,
before the process is forked. Each run replaces only the pods that it has changed.

A pod that replaces an evicted pod is listed under the key of the evicted pod, its *original*. All
other pods are their own originals. Of several pods with the same original, only one is listed. So
when a pod changes, the listed pod is selected again from all pods with the same original.

    pods that exist   a/web-1, a/web-9 (replaces web-2)      listed as   a/web-1, a/web-2
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminal, is_terminating
from fairlead.api.pods.original import original_key
from fairlead.whatif.outcome.run_outcome import SUCCEEDED, PodEnd


class ListedPod(Protocol):
    """An existing pod, which may be the replacement of an evicted pod.

    `end` is the PodEnd of the pod, which describes the pod's state; None if it is not known.
    """

    pod: Pod
    end: PodEnd | None


class KeptEnds:
    """The PodEnds of the pods at an instant.

    `by_key` maps each pod's own key to its PodEnd. `listed` maps the key of each original pod to
    its PodEnd, or to the PodEnd of its replacement. Both dictionaries are sorted and must not be
    changed.
    """

    def __init__(
        self,
        pods: Mapping[str, ListedPod],
        ends: dict[str, PodEnd],
        end_of: Callable[[str], PodEnd],
    ) -> None:
        """Store `ends`, the PodEnds of the existing `pods`, and compute `listed`.

        Both mappings are keyed by `namespace/name`. The key of a replacement is its own, not the
        key of the replaced pod. The caller must not change `ends` later.
        """
        keys = sorted(ends)
        is_sorted = keys == list(ends)  # usually, because loaded pods are listed by name
        self.by_key = ends if is_sorted else {key: ends[key] for key in keys}
        self.listed = self.by_key
        self._replacing = [key for key, end in self.by_key.items() if end.key != key]
        if self._replacing:
            self.listed = listed(pods, self.by_key, end_of)

    def updated(
        self,
        pods: Mapping[str, ListedPod],
        changed: Iterable[str],
        end_of: Callable[[str], PodEnd],
    ) -> dict[str, PodEnd]:
        """Return the PodEnds of the existing `pods`, sorted by key.

        A pod that replaces an evicted pod is listed under the key of the evicted pod. Of several
        pods with the same key, only one is in the result.

        `changed` contains the keys of all pods that were created, changed or deleted since this
        object was made. The caller must not modify the result: if `changed` is empty, the result is
        the dictionary `self.listed` itself.
        """
        keys = set(changed)
        if not keys:
            return self.listed
        before = (self.by_key[key].key for key in keys if key in self.by_key)
        originals = {*before, *(original_key(pods[key].pod) for key in keys if key in pods)}
        concerned = keys.union(originals, self._replacing)
        found = listed(pods, sorted(concerned & pods.keys()), end_of)
        anew = {key: found[key] for key in sorted(originals & found.keys())}
        gone = sorted(key for key in originals - anew.keys() if key in self.listed)
        return UpdatedEnds(self.listed, anew, gone)

    def nodes_of(self, changed: Iterable[str]) -> set[str]:
        """Return the nodes that the pods with keys in `changed` had when this object was made."""
        return {self.by_key[key].node for key in changed if key in self.by_key}


class UpdatedEnds(dict[str, PodEnd]):
    """The PodEnds `kept`, with the PodEnds `anew` and without the keys `gone`, sorted by key.

    A pickle contains these three parts instead of all entries. `kept` is usually shared between
    processes (`forked_call`), so that little is sent.
    """

    def __init__(
        self, kept: Mapping[str, PodEnd], anew: Mapping[str, PodEnd], gone: Sequence[str]
    ) -> None:
        super().__init__(kept)
        self._parts = kept, anew, gone
        for key in gone:
            del self[key]
        self.update(anew)
        if not anew.keys() <= kept.keys():
            ordered = {key: self[key] for key in sorted(self)}
            self.clear()
            self.update(ordered)

    def __reduce__(self) -> tuple[type[UpdatedEnds], tuple[object, ...]]:
        """Return the class and its arguments; `pickle` would otherwise send each entry."""
        return type(self), self._parts


class _Best(Struct, frozen=True):
    key: str
    liveness: int


def listed(
    pods: Mapping[str, ListedPod], keys: Iterable[str], end_of: Callable[[str], PodEnd]
) -> dict[str, PodEnd]:
    """Return the PodEnds of the pods with `keys`; a replacement has the key of the pod it replaces.

    `keys` are the pods' own keys, sorted. If several pods get the same key, the result has the pod
    with the highest `_liveness`. Of several pods with this `_liveness`, the result has the last pod
    in `keys`. The result is sorted by key.
    """
    best: dict[str, _Best] = {}
    for key in keys:
        pod = pods[key].pod
        original, liveness = original_key(pod), _liveness(pod)
        other = best.get(original)
        if other is None or other.liveness <= liveness:
            best[original] = _Best(key, liveness)
    return {original: end_of(best[original].key) for original in sorted(best)}


def _liveness(pod: Pod) -> int:
    """Return 0 for terminating pods, 1 for failed pods, 2 for succeeded pods, 3 for live pods."""
    if is_terminating(pod):
        return 0
    if is_terminal(pod):
        return 2 if pod.status.phase == SUCCEEDED else 1
    return 3
