"""The file of `--node-groups`: node groups and flags for a simulated Cluster Autoscaler.

tools/form_schema.py writes its JSON schema, docs/node-groups-schema.json, from the classes in this
module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Final

from msgspec import Meta
from msgspec.structs import replace

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.json import Json
from fairlead.api.objects import Node
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    DELETION_TIME,
    PROVISION_TIME,
    NodeGroupSpec,
)
from fairlead.engine.autoscaling.cluster_autoscaler.options import (
    NodeGroupOptions,
    OptionError,
    parse_options,
)
from fairlead.engine.autoscaling.compose import ClusterAutoscalerConfig
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.configuration.autoscaling.new_node_validation import (
    Problems,
    amount_problems,
    label_problems,
    taint_problems,
)
from fairlead.whatif.configuration.autoscaling.open_cost_price import PRICE_MAX
from fairlead.whatif.input.document import read_one
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.field_line import with_lines
from fairlead.whatif.input.strict_form import StrictForm, decode_strictly, field_duration
from fairlead.whatif.snapshot.node_pool import node_template, other_zones, with_model_first

Quantities = dict[str, str | int | float]


def _description(text: str) -> Meta:
    """Return `text` as the description of a field in the JSON schema."""
    return Meta(description=text)


_PODS: Final = 110  # the default of the kubelet's --max-pods


class NodeTemplateForm(StrictForm, frozen=True, kw_only=True):
    """The template of the new nodes of a group: their labels, taints and amounts of resources."""

    labels: Annotated[
        dict[str, str], _description("Labels of new nodes, in addition to the labels of the group.")
    ] = {}
    taints: Annotated[
        list[dict[str, Any]], _description("Taints of new nodes, as in the spec of a Node.")
    ] = []
    capacity: Annotated[
        Quantities,
        _description(
            "Capacity of a new node: a quantity for each resource, such as cpu; by default, 110 "
            "pods."
        ),
    ]
    allocatable: Annotated[
        Quantities,
        _description("Allocatable amounts of a new node; by default, the capacity of a resource."),
    ] = {}


class MissingCapacityForm(StrictForm, frozen=True, kw_only=True, rename={"lasts": "for"}):
    """A period in which no machine can be created."""

    after: Annotated[
        str | float, _description("Time from the start of the run to this period, such as 5m.")
    ] = 0
    lasts: Annotated[str | float, _description("Length of this period, such as 20m.")]


class NodeGroupForm(StrictForm, frozen=True, kw_only=True):
    """A node group: its limits, its new nodes, and the behaviour of its cloud provider."""

    name: str
    min: Annotated[int, _description("The smallest number of nodes, from 0 to max.")]
    max: Annotated[int, _description("The largest number of nodes.")]
    labels: Annotated[
        dict[str, str], _description("Nodes with all these labels belong to the group.")
    ]
    template: Annotated[
        NodeTemplateForm | None,
        _description("New nodes; by default, copies of the first node of the group."),
    ] = None
    price: Annotated[float | None, _description("Price of a node per hour.")] = None
    provision_time: Annotated[
        str | float | None,
        _description("Time from the request for a node until the node is Ready; by default, 90s."),
    ] = None
    deletion_time: Annotated[
        str | float | None,
        _description(
            "Time from the deletion of a machine until its Node is gone; by default, 60s."
        ),
    ] = None
    out_of_capacity: Annotated[
        list[MissingCapacityForm],
        _description("Periods in which the provider delivers no machine."),
    ] = []
    options: Annotated[
        dict[str, Any], _description("Flags of Cluster Autoscaler that apply only to this group.")
    ] = {}


class NodeGroupFile(StrictForm, frozen=True, kw_only=True):
    """Node groups for fairlead --autoscale cluster-autoscaler --node-groups FILE."""

    node_groups: list[NodeGroupForm]
    flags: Annotated[
        dict[str, Any], _description("Flags of Cluster Autoscaler, without the leading dashes.")
    ] = {}


def groups_of_file(path: str, nodes: Iterable[Json]) -> ClusterAutoscalerConfig:
    """Return the node groups and flags of the file `path` for a cluster with `nodes`.

    Raises InputError, which names line and field.
    """
    document = read_one(path)
    with with_lines(document):
        return _config(document.source, decode_strictly(document, NodeGroupFile), list(nodes))


def _config(path: str, form: NodeGroupFile, nodes: list[Json]) -> ClusterAutoscalerConfig:
    _check_flags(path, "flags", form.flags, parse_options)
    specs: list[NodeGroupSpec] = []
    for index, group in enumerate(form.node_groups):
        where = f"node-groups[{index}]"
        if not group.name:
            raise InputError(path, "is empty", field=f"{where}.name")
        if any(spec.id == group.name for spec in specs):
            raise InputError(path, f"{group.name!r} appears twice", field=f"{where}.name")
        specs.append(_spec(path, where, group, nodes))
    if not specs:
        raise InputError(path, "is empty", field="node-groups")
    return ClusterAutoscalerConfig(tuple(specs), parse_options(form.flags))


def _check_flags(
    path: str, where: str, flags: dict[str, Any], parse: Callable[[dict[str, Any]], object]
) -> None:
    """Raise InputError, at the field `where`, for the first of `flags` that `parse` refuses.

    `parse` gets one flag at a time, and raises OptionError to refuse it.
    """
    for name, value in flags.items():
        try:
            parse({name: value})
        except OptionError as cause:
            problem = str(cause).removeprefix("--").removeprefix(f"{name}: ")
            raise InputError(path, problem, field=f"{where}.{name}") from None


def _spec(path: str, where: str, group: NodeGroupForm, nodes: Iterable[Json]) -> NodeGroupSpec:
    """Return the node group that `group` describes.

    `group` was read from the field `where` of the file `path`. `nodes` are the nodes of the
    cluster. Raises InputError.
    """
    if not 0 <= group.min <= group.max:
        problem = f"must satisfy 0 <= min <= max, but min is {group.min} and max is {group.max}"
        raise InputError(path, problem, field=where)
    if not group.labels:
        problem = "is empty, so no node could belong to the group"
        raise InputError(path, problem, field=f"{where}.labels")
    for field_name, problem in label_problems(f"{where}.labels", group.labels):
        raise InputError(path, problem, field=field_name)
    if group.price is not None and not 0 <= group.price <= PRICE_MAX:
        problem = f"{group.price} is not from 0 to {PRICE_MAX:,}"
        raise InputError(path, problem, field=f"{where}.price")
    _check_flags(path, f"{where}.options", group.options, NodeGroupOptions().overridden)
    spec = NodeGroupSpec(
        id=group.name,
        minimum=group.min,
        maximum=group.max,
        labels=group.labels,
        price=group.price,
        provision_time=_duration(
            path, f"{where}.provision-time", group.provision_time, PROVISION_TIME
        ),
        deletion_time=_duration(path, f"{where}.deletion-time", group.deletion_time, DELETION_TIME),
        out_of_capacity=tuple(_outages(path, where, group)),
        overrides=group.options,
    )
    if group.template is not None:
        return replace(spec, template=_stated_template(path, where, group, group.template))
    wanted = group.labels.items()
    members = [one for one in nodes if wanted <= (one["metadata"].get("labels") or {}).items()]
    if not members:
        problem = "no node has these labels, so a template is needed"
        raise InputError(path, problem, field=where)
    members = with_model_first(members)
    return replace(spec, template=node_template(members[0]), other_zones=other_zones(members))


def _duration(source: str, field: str, value: str | float | None, usual: DurationNs) -> DurationNs:
    """Return the duration `value` of `field`, or `usual` if it is not set. Raises InputError."""
    found = field_duration(source, field, value)
    return usual if found is None else found


def _outages(
    path: str, where: str, group: NodeGroupForm
) -> Iterator[tuple[DurationNs, DurationNs]]:
    for index, span in enumerate(group.out_of_capacity):
        field_name = f"{where}.out-of-capacity[{index}]"
        after = field_duration(path, f"{field_name}.after", span.after) or 0
        yield after, after + (field_duration(path, f"{field_name}.for", span.lasts) or 0)


def _stated_template(path: str, where: str, group: NodeGroupForm, stated: NodeTemplateForm) -> Json:
    """Return the template of new nodes of `group`, made from `stated`, the template in the file.

    `group` was read from the field `where` of the file `path`. Raises InputError if `stated` is not
    valid.
    """
    capacity = {"pods": _PODS, **stated.capacity}
    template: Json = {
        "metadata": {"labels": {**stated.labels, **group.labels}},
        "spec": {"taints": stated.taints} if stated.taints else {},
        "status": {"capacity": capacity, "allocatable": {**capacity, **stated.allocatable}},
    }
    try:
        made = decode_as(Node, template)
    except DecodeError as cause:
        raise InputError(path, cause.problem, field=f"{where}.template") from None
    for field_name, problem in _problems(f"{where}.template", stated, made):
        raise InputError(path, problem, field=field_name)
    return template


def _problems(where: str, stated: NodeTemplateForm, node: Node) -> Problems:
    """Yield (field, problem) for each problem of the template `stated`, which is at `where`.

    `node` is the Node made from this template.
    """
    yield from label_problems(f"{where}.labels", stated.labels)
    for index, taint in enumerate(node.spec.taints):
        yield from taint_problems(f"{where}.taints[{index}]", taint)
    for part, amounts in (("capacity", stated.capacity), ("allocatable", stated.allocatable)):
        for name, amount in amounts.items():
            for problem in amount_problems(name, amount):
                yield f"{where}.{part}.{name}", problem
