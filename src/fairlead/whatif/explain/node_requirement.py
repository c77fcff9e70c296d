"""Explains which required labels no node has, or which taints keep a pod off suitable nodes.

The scheduler says only how many nodes do not match the pod's node affinity, or have untolerated
taints. The scheduler does not name the label, its values, or the taint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.api.nodes.node_selector import (
    required_node_affinity_matches,
    requirement_words,
)
from fairlead.api.nodes.taint import (
    CONDITION_TAINTS,
    NO_EXECUTE,
    NO_SCHEDULE,
    is_tolerated,
    taint_text,
)
from fairlead.api.objects import Node, Pod, Taint, Toleration
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import joined
from fairlead.apiserver.kind import CRON_JOB, JOB, POD
from fairlead.engine.scheduling.compose import BuiltProfile
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.remedy.proposals import tolerating
from fairlead.engine.scheduling.remedy.selector_correction import SelectorCorrection
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.outcome.workload import ROLLOUT, workload_of
from fairlead.whatif.planner.node.readiness import takes_pods
from fairlead.whatif.snapshot.absent_label import absent_labels
from fairlead.whatif.snapshot.validation.workload import WORKLOADS

_VALUES_MAX: Final = 5
_EVERY_TAINT: Final = Toleration(operator="Exists")
_REJECTING: Final = (NO_SCHEDULE, NO_EXECUTE)

_POD_SPEC: Final = "spec.template.spec"
_POD_SPECS: Final[Mapping[str, str]] = {
    **{one.kind: _POD_SPEC for one in WORKLOADS},
    CRON_JOB.kind: "spec.jobTemplate.spec.template.spec",
    ROLLOUT: _POD_SPEC,
    POD.kind: "spec",
}
"""The path of the pod's spec in the workload, by the kind of the workload."""
_IMMUTABLE: Final = (POD.kind, JOB.kind)


def unmet_requirements(built: BuiltProfile, pod: PodInfo) -> Iterator[str]:
    """Yield sentences about the labels or taints because of which `pod` fits no node.

    `pod` must be a pod that fits no node. If no node matches its nodeSelector and required node
    affinity, the sentences name the labels that no node has. Otherwise, a sentence names the taints
    of the nodes in service that would fit if they had no taints. If the scheduler has extenders,
    there is no sentence about taints.
    """
    nodes = [(one.name, one.labels) for one in built.framework.cluster.table.nodes()]
    spec = pod.pod.spec
    if not any(required_node_affinity_matches(spec, labels, name) for name, labels in nodes):
        yield from absent_labels(pod.pod, [labels for _, labels in nodes])
    elif not built.extenders:  # Extenders may refuse the other nodes, too.
        yield from _untolerated_taints(built, pod)


def correction_sentences(correction: SelectorCorrection | None) -> Iterator[str]:
    """Yield a sentence for each probable typing error of `correction`; nothing if it is None.

    The sentence names the field of the pod's workload to correct. The template of a Job and the
    spec of a pod are immutable. So the sentence says that the Job or pod has to be created again.

    upstream: pkg/apis/batch/validation/validation.go: ValidateJobSpecUpdate,
    pkg/apis/core/validation/validation.go: ValidatePodUpdate
    """
    if correction is None:
        return
    owner = workload_of(correction.pod)
    prefix = _POD_SPECS.get(owner.kind)
    for one in correction.corrected:
        what = f"{one.field} of the pods" if prefix is None else f"{prefix}.{one.field}"
        again = " and create it again" if owner.kind in _IMMUTABLE else ""
        has = "1 node has" if one.nodes == 1 else f"{one.nodes:,} nodes have"
        yield (
            f"{requirement_words(one.given)} may be a typing error, because {has} "
            f"{requirement_words(one.likely)}: correct {what} of {owner}{again}."
        )


def _untolerated_taints(built: BuiltProfile, pod: PodInfo) -> Iterator[str]:
    """Yield a sentence about taints that alone keep `pod` off nodes in service."""
    cluster = built.framework.cluster
    tolerant = tolerating(pod.pod, _EVERY_TAINT)
    found = find_nodes_that_fit(built.plans, PodInfo(tolerant, cluster.shapes.shape_of(tolerant)))
    keeping: Counter[tuple[str, ...]] = Counter()
    names: list[str] = []
    for node in found.nodes():
        taints = _untolerated(node.node, pod.pod)
        is_in_service = takes_pods(node.node) and not node.node.spec.unschedulable
        if is_in_service and taints and not any(one.key in CONDITION_TAINTS for one in taints):
            keeping[tuple(map(taint_text, taints))] += 1
            names.append(node.name)
    if not names:
        return
    which = f"The only node that would fit otherwise, {names[0]}, has"
    if len(names) > 1:
        which = f"The {len(names):,} nodes that would fit otherwise have"
    ordered = sorted(keeping.items(), key=lambda item: (-item[1], item[0]))
    if len(ordered) == 1:
        texts = ordered[0][0]
        noun = "taint" if len(texts) == 1 else "taints"
        yield f"{which} the {noun} {joined(texts)}, which the pod does not tolerate."
        return
    shown = [f"{', '.join(texts)} ({counted(count, 'node')})" for texts, count in ordered]
    if len(shown) > _VALUES_MAX:
        shown[_VALUES_MAX:] = [f"{len(shown) - _VALUES_MAX:,} more"]
    yield f"{which} taints that the pod does not tolerate: {'; '.join(shown)}."


def _untolerated(node: Node, pod: Pod) -> list[Taint]:
    taints = (one for one in node.spec.taints if one.effect in _REJECTING)
    return [one for one in taints if not is_tolerated(one, pod.spec.tolerations)]
