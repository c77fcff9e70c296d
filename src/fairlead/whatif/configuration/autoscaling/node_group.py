"""Node groups for a simulated autoscaler: from a file, or from the labels of the nodes in a dump.

Managed clusters label nodes with their node group. A GKE node pool becomes one group per zone. If
the dump contains a Cluster Autoscaler, its limits (module group_limit) and flags apply.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.quantity import milli_value
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import NODE
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
)
from fairlead.engine.autoscaling.cluster_autoscaler.command_line import (
    flags_of_command_line,
    options_of_flags,
)
from fairlead.engine.autoscaling.cluster_autoscaler.expander.priority import (
    CONFIG_MAP as PRIORITIES,
)
from fairlead.engine.autoscaling.cluster_autoscaler.expander.priority import (
    priorities_in,
)
from fairlead.engine.autoscaling.cluster_autoscaler.options import (
    AutoscalingOptions,
    OptionError,
    is_known,
    parse_options,
)
from fairlead.engine.autoscaling.compose import ClusterAutoscalerConfig
from fairlead.whatif.configuration.autoscaling.group_limit import (
    GROUP_LABELS,
    GroupLimits,
    Limits,
    backed_off_groups,
    group_of,
)
from fairlead.whatif.configuration.autoscaling.instance_type_file import (
    StatedType,
    assumed_spot_prices,
    read_instance_types,
)
from fairlead.whatif.configuration.autoscaling.node_group_file import groups_of_file
from fairlead.whatif.configuration.autoscaling.node_price import (
    price_key,
    price_of_labels,
    price_uses,
    type_of_labels,
)
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.installed_autoscaler import STATUS, hosted_flags
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_pool import (
    is_in_service,
    name_of_node,
    node_template,
    other_zones,
    with_model_first,
)
from fairlead.whatif.snapshot.samples import samples

# the values of --cloud-provider
_PROVIDERS: Final = {
    "EKS": "aws",
    "eksctl": "aws",
    "GKE": "gce",
    "AKS": "azure",
    "Cluster API": "clusterapi",
}
# The names of their groups always contain the name in the labels. Those of EKS did not before 2021.
_NAMED_BY_LABEL: Final = ("eksctl", "GKE", "AKS", "kops")
# Flags that change decisions and are not simulated, each with the value that changes nothing.
_NOT_SIMULATED: Final = {
    "capacity-buffer-pod-injection-enabled": ("false",),
    "capacity-quotas-enabled": ("false",),
    "enable-proactive-scaleup": ("false",),
    "enable-provisioning-requests": ("false",),
    "frequent-loops-enabled": ("false",),
    "scale-up-from-zero": ("true",),
    "scheduler-config-file": ("",),
}
# The limits of a group whose limits are unknown. The maximum of a large group is twice its size,
# because a group is rarely at its maximum.
_ASSUMED: Final = (1, 100)
_ASSUMED_GROWTH: Final = 2


def groups_of(
    file: str, manifests: Iterable[Manifest], flags: Iterable[str]
) -> tuple[ClusterAutoscalerConfig, tuple[str, ...]]:
    """Return (node groups, notes).

    The groups and their options come from `file`. If `file` is "", the groups come from node
    labels, and the options come from `flags`, the command line of the cluster's autoscaler. If
    `flags` is empty and the cloud provider runs the autoscaler itself, the result has the options
    that the provider sets. Raises InputError.
    """
    manifests = samples(manifests)
    nodes = _nodes(manifests)
    flags = tuple(flags)
    provider, hosted = ("", ()) if flags else hosted_flags(manifests)
    parsed = list(flags_of_command_line(flags or hosted))
    if file:
        return _with_priorities(groups_of_file(file, nodes), manifests), ()
    limits = GroupLimits.of(parsed, manifests)
    config, notes = _of_labels(nodes, options_of_flags(parsed), limits)
    backed_off = _backoff_notes(config.groups, backed_off_groups(manifests))
    notes = (*notes, *backed_off, *_hosted_notes(provider, hosted), *_ignored(parsed))
    return _with_priorities(config, manifests), notes


def _with_priorities(
    config: ClusterAutoscalerConfig, manifests: Iterable[Manifest]
) -> ClusterAutoscalerConfig:
    """Return `config` with the text of the priority expander's ConfigMap, if it is needed."""
    if "priority" not in config.options.expander:
        return config
    for one in manifests:
        is_same = one.ref.name == PRIORITIES and one.ref.namespace == config.options.namespace
        if one.ref.kind == "ConfigMap" and is_same:
            return replace(config, priorities=priorities_in(one.value.get("data")))
    return config


def mixed_size_notes(
    groups: Iterable[NodeGroupSpec], manifests: Iterable[Manifest]
) -> Iterator[str]:
    """Yield a note about the groups in `groups` whose existing nodes differ in CPU or memory.

    Only nodes in service count. New nodes of a group are copies of the group's first node in
    service by name (`with_model_first`). If a file states another size for the new nodes of a
    group, there is no note about the group.
    """
    every = (one.node for one in samples(manifests) if one.kind is NODE)
    nodes = sorted(filter(is_in_service, every), key=name_of_node)
    found = []
    for group in groups:
        members = [node for node in nodes if group.owns(node)]
        amounts = ((group.template or {}).get("status") or {}).get("allocatable") or {}
        if not members or _size(members[0].status.allocatable) != _size(amounts):
            continue
        if not all(_is_similar(_size(one.status.allocatable), _size(amounts)) for one in members):
            cpu, memory = (amounts.get(key, "0") for key in ("cpu", "memory"))
            name = members[0].metadata.name
            found.append(f"{name} ({cpu} cpu, {memory} memory) in {group.id}")
    if found:
        yield (
            "Some node groups have nodes of several sizes. All new nodes of a group are copies of "
            f"one node: {listed(found)}. A template in --node-groups FILE can state another size."
        )


def _size(amounts: Mapping[str, Any]) -> tuple[int, int]:
    """Return the CPU and the memory in `amounts`, in thousandths."""
    return milli_value(str(amounts.get("cpu", "0"))), milli_value(str(amounts.get("memory", "0")))


def _is_similar(size: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether CPU is equal and memory differs by at most 5%, as between equal machines."""
    (cpu, memory), (other_cpu, other_memory) = size, other
    return cpu == other_cpu and abs(memory - other_memory) * 20 <= max(memory, other_memory)


def with_prices(
    config: ClusterAutoscalerConfig, files: str | None, manifests: Iterable[Manifest]
) -> tuple[ClusterAutoscalerConfig, tuple[str, ...]]:
    """Return (`config` with prices of its groups, notes about prices that are unknown or assumed).

    A group without a price gets the prices of its nodes' instance types in `files`. The price of a
    new node is the price for the instance type of the group's first node. If no file and no group
    states a price, there is no note. Raises InputError.
    """
    stated, nodes = {}, []
    if files is not None:
        found = (one.node for one in samples(manifests) if one.kind is NODE)
        nodes = sorted(found, key=name_of_node)
        stated = {one.name: one for one in read_instance_types(files, nodes)}
    groups = []
    uses: list[tuple[StatedType, str, str]] = []
    for group in config.groups:
        if group.price is not None or not stated:
            groups.append(group)
            continue
        of_group = [node.metadata.labels for node in nodes if group.owns(node)]
        uses += price_uses((group.node_labels, *of_group), stated.values())
        prices = {
            price_key(labels): price_of_labels(stated, labels)
            for labels in of_group
            if type_of_labels(labels)
        }
        price = price_of_labels(stated, group.node_labels)
        groups.append(replace(group, price=price, type_prices=prices))
    without = [
        _with_types(one) for one in groups if one.price is None or None in one.type_prices.values()
    ]
    wants_prices = files is not None or len(without) < len(groups)
    note = (
        f"No price is known for the nodes of {_listed(without)}; "
        "while there are such nodes, the total cost is unknown."
    )
    notes = (note,) if without and wants_prices else ()
    return replace(config, groups=tuple(groups)), (*notes, *assumed_spot_prices(uses))


def _with_types(group: NodeGroupSpec) -> str:
    """Return the name of `group`, with its instance types that have no price."""
    types = sorted({kind for (kind, _, _), price in group.type_prices.items() if price is None})
    return f"{group.id} ({', '.join(types)})" if types else group.id


Form = TypeVar("Form")


class _NodeMetadataForm(msgspec.Struct):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _NodeSpecForm(msgspec.Struct):
    taints: list[dict[str, Any]] | None = None


class _NodeForm(msgspec.Struct):
    """The parts of a Node that `groups_of` reads."""

    metadata: _NodeMetadataForm
    spec: _NodeSpecForm | None = None
    status: dict[str, Any] | None = None


def _read_as(value: Json, form: type[Form]) -> Form | None:
    """Return `value` as `form`; None if `value` does not have this form."""
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError:
        return None


def _nodes(manifests: Iterable[Manifest]) -> list[Json]:
    """Return the nodes as JSON, sorted by name. Raises InputError for a malformed node.

    The order matters: new nodes of a group are copies of the group's first node in service.
    """
    found = sorted((one for one in manifests if one.kind is NODE), key=lambda one: one.ref.name)
    for one in found:
        _ = one.node  # raises InputError if the node is malformed
    nodes = [one.value for one in found]
    return [node for node in nodes if _read_as(node, _NodeForm) is not None]


def _backoff_notes(groups: Iterable[NodeGroupSpec], backed_off: Mapping[str, str]) -> Iterator[str]:
    """Yield a note about the groups that are also in `backed_off` (see `backed_off_groups`)."""
    named = {
        one.id: backed_off[one.provider_name] for one in groups if one.provider_name in backed_off
    }
    if named:
        words = (f"{name} ({code})" if code else name for name, code in named.items())
        yield (
            f"The Cluster Autoscaler could not add nodes to {listed(list(words))} when the dump "
            "was taken, but the answer assumes that it can. To change this, set out-of-capacity in "
            "--node-groups FILE."
        )


def _hosted_notes(provider: str, flags: Iterable[str]) -> Iterator[str]:
    if provider:
        yield (
            f"{provider} runs Cluster Autoscaler, so the dump lacks its flags: the defaults of "
            f"{provider} are assumed ({' '.join(flags)})."
        )


def _ignored(flags: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a note for each of `flags` that would change decisions but is not simulated.

    Also yield a note for each simulated flag with an invalid value.
    """
    for name, value in flags:
        if value.lower() not in _NOT_SIMULATED.get(name, (value.lower(),)):
            yield f"A flag of the Cluster Autoscaler is ignored: --{name} is not simulated."
        try:
            if is_known(name):
                parse_options({name: value})
        except OptionError as cause:
            yield f"A flag of the Cluster Autoscaler is ignored: {str(cause).rstrip('.')}."


# --- groups from labels ------------------------------------------------------------------------


def _of_labels(
    nodes: Iterable[Json], options: AutoscalingOptions, limits: GroupLimits
) -> tuple[ClusterAutoscalerConfig, tuple[str, ...]]:
    members, selectors = _members(nodes, limits)
    specs: list[NodeGroupSpec] = []
    assumed: dict[tuple[int, int], list[str]] = {}
    known = {
        (owner, name): limits.find(owner, selectors[owner, name][0], name)
        for owner, name in sorted(members)
    }
    fixed = list(_not_autoscaled(known, limits))
    impossible = [one for one, stated in known.items() if stated and _is_impossible(stated[1])]
    for owner, name in (one for one in known if one not in (*fixed, *impossible)):
        group = with_model_first(members[owner, name])
        labels, annotations = selectors[owner, name]
        stated = known[owner, name]
        if stated is None:
            stated = "", (_ASSUMED[0], max(_ASSUMED[1], _ASSUMED_GROWTH * len(group)))
            assumed.setdefault(stated[1], []).append(name)
        full, (minimum, maximum) = stated
        specs.append(
            NodeGroupSpec(
                id=name,
                minimum=minimum,
                maximum=maximum,
                labels=labels,
                annotations=annotations,
                template=node_template(group[0]),
                other_zones=other_zones(group),
                provider_name=full,
            )
        )
    present = {one[0] for one in known.values() if one is not None}
    absent = [name for name, (_, most) in limits.by_name.items() if most and name not in present]
    notes = (
        f"Node groups by the labels of {_listed(owner for owner, _ in members)}.",
        *_limit_notes(specs, assumed, limits),
        *_left_out_notes([name for _, name in fixed], [] if assumed else absent, limits),
        *_impossible_notes([name for _, name in impossible], limits),
    )
    providers = {_PROVIDERS.get(owner, "") for owner, _ in members}
    if not options.cloud_provider and len(providers) == 1:
        options = replace(options, cloud_provider=providers.pop())
    return ClusterAutoscalerConfig(tuple(specs), options), notes


def _limit_notes(
    specs: Sequence[NodeGroupSpec], assumed: Mapping[Limits, Sequence[str]], limits: GroupLimits
) -> Iterator[str]:
    """Yield notes that say where the limits of the groups in `specs` come from.

    `limits` contain the known limits of some groups. For the other groups, limits are assumed:
    `assumed` maps the assumed limits to the names of these groups.
    """
    if limits.source and sum(map(len, assumed.values())) < len(specs):
        yield f"Limits of node groups from {limits.source}."
    if assumed:
        parts = (
            f"{low} to {high} nodes for {_listed(names)}"
            for (low, high), names in sorted(assumed.items())
        )
        why, other = "", "" if limits.source else f"add the ConfigMap {STATUS} to the dump, or "
        if limits.has_useless_status:
            why, other = f", because the ConfigMap {STATUS} states none that can be read", ""
        how = f"To state others, {other}use --node-groups FILE"
        yield f"Assumed limits of {', '.join(parts)}{why}. {how}."


def _left_out_notes(
    fixed: Sequence[str], absent: Sequence[str], limits: GroupLimits
) -> Iterator[str]:
    """Yield notes about the groups that are not simulated.

    The groups in `fixed` have nodes, but the autoscaler does not manage them. The groups in
    `absent` have no nodes.
    """
    if fixed:
        yield f"Not autoscaled, because missing in {limits.source}: {_listed(fixed)}."
    if absent:
        yield (
            f"Groups without nodes in the dump are not simulated: {listed(absent)}; "
            "--node-groups FILE describes their nodes."
        )


def _is_impossible(limits: Limits) -> bool:
    """Return whether no size of a group is within `limits`.

    If the provider is Cluster API, Cluster Autoscaler ignores such a group. If a flag --nodes
    states such limits, Cluster Autoscaler does not start.

    upstream: cloudprovider/clusterapi/clusterapi_nodegroup.go: newNodeGroupFromScalableResource
    upstream: config/dynamic/node_group_spec.go: Validate
    """
    minimum, maximum = limits
    return minimum > maximum


def _impossible_notes(names: Sequence[str], limits: GroupLimits) -> Iterator[str]:
    """Yield a note about the groups whose limits in `limits` are impossible."""
    if names:
        yield (
            f"Not autoscaled, because the minimum in {limits.source} is above the maximum: "
            f"{_listed(names)}."
        )


def _members(
    nodes: Iterable[Json],
    limits: GroupLimits,
) -> tuple[
    dict[tuple[str, str], list[Json]],
    dict[tuple[str, str], tuple[dict[str, str], dict[str, tuple[str, ...]]]],
]:
    """Return the nodes of each group, and the (labels, annotations) that mark these nodes.

    Both results are maps, keyed by (provider, name of the group). An annotation has all values that
    nodes of the group have. Raises InputError if no node belongs to a group.
    """
    members: dict[tuple[str, str], list[Json]] = {}
    selectors: dict[tuple[str, str], tuple[dict[str, str], dict[str, tuple[str, ...]]]] = {}
    for node in nodes:
        meta = node["metadata"]
        found = group_of(meta.get("labels") or {}, meta.get("annotations") or {}, limits.standalone)
        if found is not None:
            owner, name, labels, annotations = found
            members.setdefault((owner, name), []).append(node)
            _, values = selectors.setdefault((owner, name), (labels, {}))
            for key, value in annotations.items():
                values[key] = tuple(dict.fromkeys((*values.get(key, ()), value)))
    if not members:
        known = ", ".join(label for _, label, _ in GROUP_LABELS)
        problem = f"no node has a label of a node group ({known})"
        raise InputError(
            "--autoscale",
            f"{problem}; give --node-groups FILE (in a scenario: settings.node-groups)",
        )
    return members, selectors


def _not_autoscaled(
    known: Mapping[tuple[str, str], tuple[str, Limits] | None], limits: GroupLimits
) -> Iterator[tuple[str, str]]:
    """Yield the groups (provider, name) that the cluster's autoscaler does not manage.

    The keys of `known` are the groups with nodes. A value is the pair (the cloud provider's name of
    the group, limits). The value is None if no name in `limits` was recognised as the name of the
    group.

    The autoscaler can manage a group even if `known` maps it to None. For some providers, the name
    of a group in `limits` does not contain the group's name in the node labels. For such a
    provider, a name in `limits` that belongs to no other group may be the name of this group. In
    this case, the group is not yielded.
    """
    if not limits.has_all:
        return
    found = {one[0] for one in known.values() if one is not None}
    is_complete = found.issuperset(limits.by_name)
    for (owner, name), one in known.items():
        if one is None and found and (is_complete or owner in _NAMED_BY_LABEL):
            yield owner, name


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
