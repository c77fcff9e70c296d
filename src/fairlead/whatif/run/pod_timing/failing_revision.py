"""FailingRevisions: the revisions of pod templates whose pods fail to start, from a dump.

A revision fails if both of these are true:

- All bound pods of the revision wait because a container fails to start, as in ImagePullBackOff or
  CrashLoopBackOff.
- The cause is probably not the node: either the pods are on at least two nodes, or other pods run
  on the same node, and pods of another revision of the workload run somewhere. An example of the
  second case is a rollout of a StatefulSet, which replaces one pod at a time.

The new pods of a failing revision fail, too. Terminating and completed pods do not count.

    2 pods on n1 and n2, both ImagePullBackOff         fails
    the same, and 1 Ready pod on n3                    does not fail
    1 pod on n1, CrashLoopBackOff                      does not fail: another node may help
    the same, 2 pods of the old revision run, and
    pods of other workloads run on n1                  fails
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminal, is_terminating
from fairlead.api.text.name_list import listed
from fairlead.engine.kubelet.pod_lifecycle import fails_to_start, start_failure
from fairlead.whatif.outcome.workload import Revision, WorkloadRef, revision_of, workload_of
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import matching_pods

_NODES_MIN: Final = 2


class FailingRevisions(Struct, frozen=True):
    """The revisions that fail, each with the reason, such as `ImagePullBackOff`.

    The object is used as `KubeletConfig.never_starts`, which kubelets call like a function.
    """

    reasons: Mapping[Revision, str] = field(default_factory=dict)

    def __call__(self, pod: Pod) -> bool:
        """Return whether `pod` has a revision whose pods fail to start."""
        return (workload_of(pod), revision_of(pod)) in self.reasons

    def note(self, started: Collection[Revision]) -> str:
        """Return a note about the failing revisions among `started`; "" if none of these fails.

        `started` are the revisions of new pods.
        """
        found = sorted(self.reasons.keys() & set(started))
        if not found:
            return ""
        pods = listed([f"{ref} ({self.reasons[ref, name]})" for ref, name in found])
        return (
            f"New pods of {pods} do not become ready, because no pod of their revision starts in "
            "the dump. --startup-time assumes that they start."
        )


NO_FAILURES: Final = FailingRevisions()


def failing_revisions(manifests: Iterable[Manifest]) -> FailingRevisions:
    """Return the revisions whose pods among `manifests` fail to start."""
    nodes: dict[Revision, set[str]] = defaultdict(set)
    reasons: dict[Revision, str] = {}
    for one in matching_pods(manifests, _fails):
        pod = one.pod
        revision = workload_of(pod), revision_of(pod)
        nodes[revision].add(pod.spec.node_name)
        reasons.setdefault(revision, start_failure(pod))
    candidates = {one: names for one, names in nodes.items() if one[1]}
    if not candidates:
        return NO_FAILURES
    workloads: set[WorkloadRef] = set()  # those with running pods
    healthy: set[str] = set()  # nodes with running pods
    for one in matching_pods(manifests, _works):
        pod = one.pod
        candidates.pop((workload_of(pod), revision_of(pod)), None)
        if pod.status.phase == "Running":
            workloads.add(workload_of(pod))
            healthy.add(pod.spec.node_name)
    failing = sorted(
        one
        for one, names in candidates.items()
        if len(names) >= _NODES_MIN or (one[0] in workloads and names <= healthy)
    )
    return FailingRevisions({one: reasons[one] for one in failing})


def _fails(pod: Pod) -> bool:
    return _is_present(pod) and fails_to_start(pod)


def _works(pod: Pod) -> bool:
    return _is_present(pod) and not fails_to_start(pod)


def _is_present(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and not (is_terminal(pod) or is_terminating(pod))
