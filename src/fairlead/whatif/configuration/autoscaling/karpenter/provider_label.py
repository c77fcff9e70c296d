"""The labels about instance types that Karpenter's providers set on their nodes.

NodePools and pods select instance types by these labels, such as
`karpenter.k8s.aws/instance-category`. The value for an instance type comes from the first of these
sources that has one:

1. the file of instance types: the output of `aws ec2 describe-instance-types`, or columns of a CSV
   file whose names are labels
2. an existing node of the type
3. the name and the size of the type, if NodePools create nodes with a provider for AWS

A value "" means that nodes of the type do not have the label. If no source states whether a type
has a label, requirements on the label allow the type, and a note says so.

source: karpenter-provider-aws pkg/providers/instancetype/types.go: computeRequirements
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from fairlead.api.objects import Node
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import INSTANCE_TYPE
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.whatif.configuration.autoscaling.aws_type_label import AWS, EKS, labels_of_named
from fairlead.whatif.configuration.autoscaling.instance_type_file import StatedType

FACT_LABELS: Final = (
    f"{AWS}/instance-", f"{EKS}/instance-", "karpenter.azure.com/sku-",
    "karpenter.k8s.gcp/instance-",
)  # fmt: skip
"""The prefixes of the labels with facts about the instance type."""

_OF_NODE: Final = ("/instance-tenancy",)  # follows from the NodePool, not from the type
_TYPES_SHOWN: Final = 3


def provider_groups(nodes: Iterable[Node]) -> set[str]:
    """Return the API groups of the Karpenter providers for AWS whose labels `nodes` have."""
    keys = {key for node in nodes for key in node.metadata.labels}
    return {
        group for group in (AWS, EKS) if any(key.startswith(f"{group}/instance-") for key in keys)
    }


def labels_with_type(labels: Mapping[str, str], of_type: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that a node with `labels` would have with another instance type.

    `of_type` are the labels of the other type. The value "" means that its nodes do not have the
    label. Labels that describe the present type are removed. Labels that describe the other type
    are added. A provider's labels are added only if the node already has such labels of this
    provider.
    """
    providers = tuple(one for one in FACT_LABELS if any(key.startswith(one) for key in labels))
    found = {key: value for key, value in labels.items() if not _is_fact(key)}
    for key, value in of_type.items():
        if key.startswith(FACT_LABELS) and not key.startswith(providers):
            continue
        found.pop(key, None)
        if value:
            found[key] = value
    return found


def changed_labels(labels: Mapping[str, str], of_type: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that `labels_with_type` adds, changes or removes; "" means removed."""
    found = labels_with_type(labels, of_type)
    removed = {key: "" for key in labels if key not in found}
    return removed | {key: value for key, value in found.items() if labels.get(key) != value}


def with_type_labels(
    types: Sequence[StatedType], groups: Container[str], nodes: Iterable[Node]
) -> list[StatedType]:
    """Return `types` with their labels, as the providers with the API groups `groups` set them.

    `types` keep the labels that they already have. Callers sort `nodes`: a type gets the labels of
    the first of its nodes that has such labels.
    """
    of_nodes = _labels_of_nodes(nodes)
    keys = dict.fromkeys(key for labels in of_nodes.values() for key in labels)
    found = []
    for one in types:
        labels: dict[str, str] = {}
        for group in (AWS, EKS):
            if group in groups:
                labels |= labels_of_named(group, one.name, one.capacity)
        if one.name in of_nodes:
            labels |= {key: of_nodes[one.name].get(key, "") for key in keys}
        stated = one.labels
        if EKS in groups:
            stated = {**stated, **{_of_group(EKS, key): value for key, value in stated.items()}}
        found.append(replace(one, labels={**labels, **stated}))
    return found


def labels_of_all(types: Sequence[StatedType]) -> frozenset[str]:
    """Return the label keys that every type in `types` states, including labels with value ""."""
    if not types:
        return frozenset()
    return frozenset.intersection(*(frozenset(one.labels) for one in types))


def unchecked_requirements(pools: Iterable[NodePool], types: Sequence[StatedType]) -> Iterator[str]:
    """Yield a note about each label that `pools` require but that some of `types` do not state.

    The check covers only labels whose prefix is the API group of the pool's node class.
    """
    names: dict[str, list[str]] = {}
    for pool in pools:
        spec = pool.spec.template.spec
        for one in spec.requirements:
            if one.key.startswith(f"{spec.node_class_ref.group}/"):
                names.setdefault(one.key, []).append(pool.name)
    for key, of_pools in names.items():
        missing = sorted(one.name for one in types if key not in one.labels)
        if missing:
            which, require = "NodePool", "requires"
            if len(set(of_pools)) > 1:
                which, require = "NodePools", "require"
            subject = f"{which} {', '.join(dict.fromkeys(of_pools))}"
            yield (
                f"{subject} {require} the label {key}, but its value is not known for the "
                f"instance type {listed(missing, _TYPES_SHOWN)}. Fairlead assumes that these types "
                "meet the requirement. To state values, add a column with the name of the label to "
                "the CSV file of --instance-types."
            )


def _of_group(group: str, key: str) -> str:
    """Return `key`, the label of a Karpenter provider, in the form that the provider `group` uses.

    If `key` has the prefix of the provider for AWS (`AWS`), `group` replaces this prefix. Other
    labels stay as they are.
    """
    domain, slash, fact = key.partition("/")
    return f"{group}/{fact}" if slash and domain == AWS else key


def _labels_of_nodes(nodes: Iterable[Node]) -> Mapping[str, Mapping[str, str]]:
    """Return the labels that describe each instance type, read from the nodes of the type.

    The key is the instance type. The labels come from the first node of the type that has such
    labels.
    """
    found: dict[str, dict[str, str]] = {}
    for node in nodes:
        labels = node.metadata.labels
        name = labels.get(INSTANCE_TYPE, "")
        of_type = {key: value for key, value in labels.items() if _is_fact(key)}
        if name and of_type:
            found.setdefault(name, of_type)
    return found


def _is_fact(key: str) -> bool:
    return key.startswith(FACT_LABELS) and not key.endswith(_OF_NODE)
