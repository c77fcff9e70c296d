"""Finds pods for which no node is created, because no node can meet their requirements.

upstream: pkg/controllers/provisioning/provisioner.go:Validate, pkg/apis/v1/nodeclaim_validation.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.nodes.node_selector import required_node_affinity
from fairlead.api.objects import NodeSelectorRequirement, NodeSelectorTerm, Pod
from fairlead.api.text.integer import parse_int64
from fairlead.engine.autoscaling.karpenter.labels import (
    CAPACITY_TYPE,
    CAPACITY_TYPES,
    GROUP,
    NODE_POOL,
    is_restricted,
    normalized_label,
)
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.volumetopology import (
    volume_problem,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import DOES_NOT_EXIST
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import pod_requirements
from fairlead.engine.autoscaling.karpenter.state.storage import StorageObjects

_OPERATORS: Final = ("DoesNotExist", "Exists", "Gt", "Gte", "In", "Lt", "Lte", "NotIn")
_NUMERIC: Final = ("Gt", "Lt", "Gte", "Lte")


def avoids_karpenter(pod: Pod) -> bool:
    """Return whether the pod requires or prefers a node that Karpenter does not manage.

    As in upstream, the preference with the highest weight counts like a requirement.
    """
    # upstream: provisioner.go:validateKarpenterManagedLabelCanExist
    found = pod_requirements(pod, preferred=True).find(NODE_POOL)
    return found is not None and found.operator == DOES_NOT_EXIST


def pod_problem(pod: Pod, storage: StorageObjects, options: KarpenterOptions) -> str | None:
    """Return upstream's text about the pod's requirements that no node can meet.

    Returns None if there are no such requirements.
    """
    required = required_node_affinity(pod.spec)
    terms = [*_selector_terms(pod), *(required.node_selector_terms if required is not None else ())]
    problems = [problem for term in terms for problem in _term_problems(term, options)]
    volume = volume_problem(pod, storage, options)
    if volume is not None:
        problems.append(volume)
    return "; ".join(problems) or None


def _selector_terms(pod: Pod) -> Iterator[NodeSelectorTerm]:
    for key, value in sorted(pod.spec.node_selector.items()):
        one = NodeSelectorRequirement(key=key, operator="In", values=(value,))
        yield NodeSelectorTerm(match_expressions=(one,))


def _term_problems(term: NodeSelectorTerm, options: KarpenterOptions) -> Iterator[str]:
    if term.match_fields:
        yield "node selector term with matchFields is not supported"
    for one in term.match_expressions:
        yield from requirement_problems(one, options)


def requirement_problems(
    stated: NodeSelectorRequirement, options: KarpenterOptions
) -> Iterator[str]:
    """Yield upstream's texts about a requirement that is invalid or restricted."""
    # upstream: nodeclaim_validation.go:ValidateRequirement
    key, operator, values = normalized_label(stated.key), stated.operator, stated.values
    if operator not in _OPERATORS:
        supported = " ".join(_OPERATORS)
        yield f"key {key} has an unsupported operator {operator} not in [{supported}]"
    if is_restricted(key, options.well_known_labels):
        known = " ".join(sorted(options.well_known_labels))
        yield (
            f"using label {key} is not allowed as it might interfere with the internal "
            f"provisioning logic; specify a well known label: [{known}], or a custom label that "
            f"does not use a restricted domain: [{GROUP}]"
        )
    if key == CAPACITY_TYPE and operator == "In" and not set(values) & set(CAPACITY_TYPES):
        listed = " ".join(values)
        known = " ".join(f"{one}:{{}}" for one in sorted(CAPACITY_TYPES))
        yield (
            f"no valid values found in [{listed}] for {key}, expected one of: map[{known}], "
            f"got: [{listed}]"
        )
    for problem in label_key_problems(key):
        yield f"key {key} is not a qualified name, {problem}"
    for value in values:
        for problem in label_value_problems(value):
            yield f"invalid value {value} for key {key}, {problem}"
    if operator == "In" and not values:
        yield f"key {key} with operator {operator} must have a value defined"
    if operator in _NUMERIC and not _is_one_natural_number(values):
        yield f"key {key} with operator {operator} must have a single positive integer value"


def _is_one_natural_number(values: tuple[str, ...]) -> bool:
    number = parse_int64(values[0]) if len(values) == 1 else None
    return number is not None and number >= 0
