"""Extender preemption: lets extenders remove candidates and change their victims.

The extenders are called one after the other. Each extender gets the candidates that the previous
extender accepted. An extender may replace the proposed victims. Every victim that an extender
returns must be on the candidate node and have a lower priority than the preemptor.

upstream: framework/preemption/preemption.go: callExtenders; extender.go: ProcessPreemption
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.api.extender import PreemptResult
from fairlead.engine.core.status import Status, error
from fairlead.engine.core.stimulus import CallOutcome
from fairlead.engine.framework.candidate import Candidate
from fairlead.engine.scheduling.extender.answer import ExtenderError, read_answer
from fairlead.engine.scheduling.extender.consultation import Consultation
from fairlead.engine.scheduling.extender.extender import ExtenderCalls
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo


def narrow_candidates(
    extenders: Sequence[ExtenderCalls], candidates: Sequence[Candidate], table: NodeTable
) -> Consultation[Sequence[Candidate] | Status]:
    """Return the candidates that all extenders accept.

    Returns an ERROR status if an extender that is not `ignorable` failed.
    """
    for calls in extenders:
        if not candidates:
            break
        if not calls.extender.preempt_verb:
            continue
        [answer] = yield (calls.preempt(candidates),)
        try:
            candidates = _read(calls, answer, table)
        except ExtenderError as cause:
            if not calls.extender.ignorable:
                return error(str(cause))
            calls.ignore(calls.extender.preempt_verb, cause)
    return candidates


def _read(calls: ExtenderCalls, answer: CallOutcome, table: NodeTable) -> list[Candidate]:
    result = read_answer(calls, answer, PreemptResult)
    candidates = []
    for name, victims in sorted(result.node_name_to_meta_victims.items()):
        node = table.find(name)
        if node is None:
            raise ExtenderError(f'nodeinfo not found for node name "{name}"')
        pods = [_victim(calls, node, pod.uid) for pod in victims.pods]
        if pods:
            distinct = {pod.id: pod for pod in pods}
            candidates.append(Candidate(node, tuple(distinct.values()), victims.num_pdb_violations))
        elif not calls.extender.ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{name}"')
    return candidates


def _victim(calls: ExtenderCalls, node: NodeInfo, uid: str) -> PodInfo:
    """Return the pod on `node` with the UID `uid`, which an extender has named as a victim.

    Raises ExtenderError if `node` has no such pod, or if the pod's priority is not lower than the
    preemptor's.
    """
    # upstream prints the victim as a Go struct
    claim = f"extender: {calls.extender.url_prefix} claims to preempt pod (UID: &{{{uid}}})"
    found = next((pod for pod in node.pods.values() if pod.uid == uid), None)
    if found is None:
        raise ExtenderError(f"{claim} on node: {node.name}, but the pod is not found on that node")
    if found.priority >= calls.pod.priority:
        raise ExtenderError(f"{claim} on node: {node.name}, but its priority is not lower")
    return found
