"""The settings for the kubelet in an EC2NodeClass, and the instance types with these settings.

    maxPods       the largest number of pods on a node; it replaces the number that the network
                  interfaces allow
    podsPerCore   limits the number of pods by the cores of the node; images of Bottlerocket ignore
                  it

The settings that reserve resources (kubeReserved, systemReserved, evictionHard, evictionSoft) are
not read. Existing nodes show how much their kubelets reserve, and new nodes are modelled on them.

source: karpenter-provider-aws pkg/providers/instancetype/types.go: pods;
pkg/providers/amifamily/bottlerocket.go: FeatureFlags
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.objects import Node
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.text.name_list import joined
from fairlead.engine.autoscaling.karpenter.apis import NodeClassReference, NodePool
from fairlead.engine.autoscaling.karpenter.labels import NODE_POOL
from fairlead.whatif.configuration.autoscaling.instance_type_file import StatedType
from fairlead.whatif.snapshot.manifest import Manifest

_KIND: Final = "EC2NodeClass"
_BOTTLEROCKET: Final = "Bottlerocket"
_RESERVING: Final = ("kubeReserved", "systemReserved", "evictionHard", "evictionSoft")
_PODS: Final = 110  # source: types.go: pods


class NodeClassKubelet(Struct, frozen=True):
    """Settings that change the capacity of the nodes of a node class.

    `max_pods` is None if it is not set; `pods_per_core` is then 0. `unread` are the names of the
    settings that reserve resources.
    """

    max_pods: int | None = None
    pods_per_core: int = 0
    unread: tuple[str, ...] = ()

    @property
    def limits_pods(self) -> bool:
        """Whether the settings change the number of pods on a node."""
        return self.max_pods is not None or self.pods_per_core > 0

    @property
    def words(self) -> str:
        """The settings that limit pods, as in `maxPods 58 and podsPerCore 10`."""
        per_core = f"podsPerCore {self.pods_per_core:,}" if self.pods_per_core > 0 else ""
        most = "" if self.max_pods is None else f"maxPods {self.max_pods:,}"
        return joined([one for one in (most, per_core) if one])

    def applied(self, one: StatedType) -> StatedType:
        """Return the instance type `one` with the number of pods that these settings allow.

        Without maxPods, the number follows from the file of instance types, the network interfaces
        or an existing node.
        """
        pods = self.max_pods
        if pods is None:
            stated = one.capacity.get("pods")
            derived = stated or one.interface_pods or one.allocatable.get("pods", _PODS)
            pods = whole_value(derived)
        if self.pods_per_core > 0:
            pods = min(pods, self.pods_per_core * (milli_value(one.capacity["cpu"]) // 1000))
        number = {"pods": str(pods)}
        return replace(one, capacity=one.capacity | number, allocatable=one.allocatable | number)


class _KubeletForm(msgspec.Struct, rename="camel"):
    max_pods: int | None = None
    pods_per_core: int | None = None
    kube_reserved: Any = None
    system_reserved: Any = None
    eviction_hard: Any = None
    eviction_soft: Any = None


class _TermForm(msgspec.Struct):
    alias: str = ""


class _SpecForm(msgspec.Struct, rename="camel"):
    kubelet: _KubeletForm | None = None
    ami_family: str = ""
    ami_selector_terms: list[_TermForm] = []


class _NodeClassForm(msgspec.Struct):
    """The parts of an EC2NodeClass that change the capacity of nodes."""

    spec: _SpecForm = msgspec.field(default_factory=_SpecForm)


def kubelet_settings(
    pools: Iterable[NodePool], found: Iterable[Manifest]
) -> dict[NodeClassReference, NodeClassKubelet]:
    """Return the settings of those EC2NodeClasses in `found` that `pools` use and that have any."""
    used = {pool.spec.template.spec.node_class_ref for pool in pools}
    settings: dict[NodeClassReference, NodeClassKubelet] = {}
    for one in found:
        if one.kind.kind == _KIND:
            ref = NodeClassReference(group=one.kind.group, kind=_KIND, name=one.ref.name)
            stated = _settings_in(one.value)
            if ref in used and stated != NodeClassKubelet():
                settings[ref] = stated
    return settings


def _settings_in(value: Json) -> NodeClassKubelet:
    try:
        spec = msgspec.convert(value, _NodeClassForm).spec
    except msgspec.ValidationError:  # another version of the kind
        return NodeClassKubelet()
    stated = spec.kubelet or _KubeletForm()
    aliases = (term.alias.partition("@")[0] for term in spec.ami_selector_terms)
    is_bottlerocket = _BOTTLEROCKET in (spec.ami_family, *map(str.title, aliases))
    return NodeClassKubelet(
        stated.max_pods,
        0 if is_bottlerocket else max(0, stated.pods_per_core or 0),
        tuple(name for name in _RESERVING if (value["spec"].get("kubelet") or {}).get(name)),
    )


def types_of_classes(
    pools: Iterable[NodePool], found: Iterable[Manifest], types: Iterable[StatedType]
) -> dict[NodeClassReference, list[StatedType]]:
    """Return `types` as each node class of `pools` with limits of pods changes them.

    `types` must have allocatable amounts. `found` contains the node classes.
    """
    every = list(types)
    return {
        ref: [one.applied(each) for each in every]
        for ref, one in kubelet_settings(pools, found).items()
        if one.limits_pods
    }


def nodes_with_limits(
    pools: Iterable[NodePool], found: Iterable[Manifest], nodes: Iterable[Node]
) -> frozenset[str]:
    """Return the names of those `nodes` whose node class limits the number of their pods.

    `found` contains the node classes. A label of the node names its class. Without this label, the
    class is that of the node's NodePool, one of `pools`.

    upstream: karpenter pkg/apis/v1/labels.go: NodeClassLabelKey
    """
    limiting = {
        NodeClassReference(group=one.kind.group, kind=_KIND, name=one.ref.name)
        for one in found
        if one.kind.kind == _KIND and _settings_in(one.value).limits_pods
    }
    if not limiting:
        return frozenset()
    keys = {f"{ref.group}/{ref.kind.lower()}": ref for ref in limiting}
    by_pool = {pool.metadata.name: pool.spec.template.spec.node_class_ref for pool in pools}
    names = set()
    for node in nodes:
        labels = node.metadata.labels
        stated = {replace(ref, name=labels[key]) for key, ref in keys.items() if key in labels}
        of_pool = by_pool.get(labels.get(NODE_POOL, ""), NodeClassReference())
        used = stated or {of_pool}
        if not limiting.isdisjoint(used):
            names.add(node.metadata.name)
    return frozenset(names)


def without_limits(nodes: Iterable[Node], limited: Container[str]) -> list[Node]:
    """Return `nodes` without the numbers of pods of the nodes that `limited` names.

    These nodes come last, because the first node of an instance type shows its size.
    """
    every = list(nodes)
    return [
        *(node for node in every if node.metadata.name not in limited),
        *(_without_pods(node) for node in every if node.metadata.name in limited),
    ]


def _without_pods(node: Node) -> Node:
    capacity, allocatable = (
        {name: amount for name, amount in amounts.items() if name != "pods"}
        for amounts in (node.status.capacity, node.status.allocatable)
    )
    status = replace(node.status, capacity=capacity, allocatable=allocatable)
    return replace(node, status=status)


def setting_notes(settings: Mapping[NodeClassReference, NodeClassKubelet]) -> Iterator[str]:
    """Yield notes about the kubelet settings that are applied, and about those that are not."""
    for ref in _ordered(settings):
        one = settings[ref]
        if one.limits_pods:
            yield f"New nodes of {ref.kind} {ref.name} have its limits of pods: {one.words}."
    unread = [ref for ref in _ordered(settings) if settings[ref].unread]
    if unread:
        names = dict.fromkeys(name for ref in unread for name in settings[ref].unread)
        yield (
            f"The kubelet settings {joined(list(names))} of "
            f"{joined([f'{ref.kind} {ref.name}' for ref in unread])} are not read: new nodes "
            "reserve as much as existing nodes."
        )


def _ordered(settings: Iterable[NodeClassReference]) -> Sequence[NodeClassReference]:
    return sorted(settings, key=lambda ref: (ref.group, ref.name))
