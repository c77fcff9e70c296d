"""New nodes (`--add-nodes 10`): copies of nodes of the cluster, or nodes of an instance type.

The copied node is the model of a new node. A new node runs the static pods of its model. The new
node also runs copies of the model's pods whose DaemonSets are not in the snapshot. Such a pod is
copied only if the new node has the labels in the nodeSelector of the pod. Several models, such as a
node of each zone, are copied in turn.

The new node gets the labels, the size and the devices (ResourceSlices) of its model. The new node
also gets the volume limits (CSINode) and the room for local volumes (CSIStorageCapacity). The new
node gets the taints of the model that no controller manages. In labels that name the model itself,
such as the hostname label (`own_labels`), the value becomes the name of the new node. The new node
does not have the images of its model, and is not cordoned. If the instance types of a new node and
its model differ, the new node has no devices, because the devices of its type are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.nodes.readiness import starting_condition
from fairlead.api.objects import CSINode, Pod
from fairlead.api.pods.facts import (
    is_static,
    is_terminal,
    is_terminating,
)
from fairlead.api.timestamp import format_timestamp
from fairlead.api.well_known_label import (
    HOSTNAME,
    INSTANCE_TYPE,
    STABLE,
    ZONE,
    region_and_zone,
)
from fairlead.apiserver.kind import CSI_NODE, CSI_STORAGE_CAPACITY, NODE, RESOURCE_SLICE
from fairlead.engine.autoscaling.node_dependents import copied_dependent
from fairlead.engine.core.instant import Instant
from fairlead.whatif.change.static_pod import daemon_pod_on, lacks_daemon_set, static_pod_on
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.node_pool import (
    labels_in_zone,
    node_template,
    own_labels,
    with_all_devices,
)

OPTION: Final = "--add-nodes"
NODES_MAX: Final = 100_000
NAME: Final = "new-node"
_LIKE: Final = "--like"
_COUNT: Final = re.compile(f"[1-9][0-9]{{0,{len(str(NODES_MAX)) - 1}}}")


def models_of(like: str) -> list[str]:
    """Return the names of the nodes to copy for `like`, a value of --like, in order.

        a,b    -> a, b
        a:3,b  -> a, a, a, b

    If more nodes are added than the result has names, copying starts again at the first name.

    Raises InputError if a name is missing, if a number of copies is malformed, or if there are more
    than NODES_MAX copies.
    """
    found: list[str] = []
    for part in filter(None, like.split(",")):
        name, colon, count = part.partition(":")
        if not name or (colon and not _COUNT.fullmatch(count)):
            problem = f"{part!r} is neither a node nor NODE:N with N from 1 to {NODES_MAX}"
            raise InputError(_LIKE, problem)
        copies = int(count or 1)
        if (total := len(found) + copies) > NODES_MAX:
            problem = f"with {part!r}, one turn has {total} copies, more than {NODES_MAX}"
            raise InputError(_LIKE, problem)
        found += [name] * copies
    return found


class Models(Struct, frozen=True):
    """Nodes to copy: `turn` is a result of `models_of`, and `by_name` maps its names to Nodes."""

    turn: Sequence[str]
    by_name: Mapping[str, Manifest]


def find_models(like: str, inventory: Inventory) -> Models:
    """Return the nodes that `like`, a value of --like, names.

    Raises InputError if `like` is malformed or names a node that does not exist.
    """
    turn = models_of(like)
    names = dict.fromkeys(turn)
    return Models(turn, {name: inventory.find(_LIKE, f"node/{name}") for name in names})


def new_nodes(
    count: int,
    models: Models | None,
    templates: Sequence[Json],
    inventory: Inventory,
    start: Instant,
) -> list[Manifest]:
    """Return `count` Nodes, each followed by its dependents; any `models` are copied in turn.

    The dependents are copies of objects of the model: CSINode, ResourceSlices, static pods, pods
    whose DaemonSet is not in the snapshot, and CSIStorageCapacities that belong only to the model.
    `start` is the time of creation of the nodes.

    The labels and the size in `templates` take precedence over the labels and the size of a model.
    The templates are used in turn, one for each zone. If there are several models, each new node
    has the template of its model's zone instead. Raises InputError if `count` is not allowed, if
    there is no model and no template, or if there is no template for the zone of a model.
    """
    if not 1 <= count <= NODES_MAX:
        raise InputError(OPTION, f"{count} is not from 1 to {NODES_MAX}")
    sources: list[_Model] = []
    if models is not None:
        known = models.by_name.items()
        by_name = {name: _Model.of(one, templates, inventory) for name, one in known}
        sources = [by_name[name] for name in models.turn]
    if not sources and not templates:
        raise InputError(OPTION, "needs --like NODE, or --instance-type NAME of --instance-types")
    if templates and len(sources) > 1:
        templates = [_template_for(one, templates) for one in sources]
    found: list[Json] = []
    for number, name in enumerate(_free_names(count, inventory)):
        source = sources[number % len(sources)] if sources else None
        template = {} if source is None else source.template
        if templates:
            template = _merged(template, templates[number % len(templates)])
        node = _node(name, template, () if source is None else source.own_labels, start)
        found.append(node)
        if source is not None:
            found += source.dependents_of(name, node["metadata"]["labels"])
    return manifests([Document(OPTION, found)])


class _Model(Struct, frozen=True):
    """What a new node copies from the existing node `name`."""

    name: str
    template: Json  # the new node without its name

    # Parts of the existing node:

    own_labels: tuple[str, ...]  # the keys of its labels whose values name the node itself
    dependents: Sequence[Manifest]  # its CSINode and its ResourceSlices
    capacities: Sequence[Json]  # its CSIStorageCapacities
    static_pods: Sequence[Pod]  # its static pods
    daemon_pods: Sequence[Pod]  # its pods whose DaemonSet is not in the snapshot

    @classmethod
    def of(cls, model: Manifest, templates: Sequence[Json], inventory: Inventory) -> _Model:
        """Return the properties that new nodes copy from `model`.

        If `templates` and `model` have different instance types, no devices are copied.
        """
        name = model.ref.name
        dependents = _dependents(name, inventory)
        if templates and _type_of(templates[0]) != _type_of(model.value):
            # The devices of the new nodes' instance type are unknown.
            dependents = [one for one in dependents if one.kind is CSI_NODE]
        own = _own_labels(model, inventory)
        pods = [pod for pod in inventory.pods_on([name]) if not is_terminating(pod)]
        return cls(
            name,
            _with_all_devices(node_template(model.value)),
            own,
            dependents,
            _own_capacities(name, own, inventory),
            [pod for pod in pods if is_static(pod)],
            [pod for pod in pods if lacks_daemon_set(pod, inventory.get) and not is_terminal(pod)],
        )

    def dependents_of(self, node: str, labels: Mapping[str, str]) -> Iterator[Json]:
        """Yield the objects that belong to the new node `node`, which has `labels`."""
        for one in self.dependents:
            yield copied_dependent(one.value, self.name, node)
        for capacity in self.capacities:
            yield _copied_capacity(capacity, self.own_labels, node)
        for pod in self.static_pods:
            yield static_pod_on(pod, node)
        for pod in self.daemon_pods:
            if pod.spec.node_selector.items() <= labels.items():
                yield daemon_pod_on(pod, node, f"{pod.metadata.name}-{node}")


def _template_for(model: _Model, templates: Sequence[Json]) -> Json:
    """Return the template in `templates` for the zone of `model`.

    Templates without a zone suit every model. Raises InputError if no template is for the zone.
    """
    by_zone = {region_and_zone(_labels_of(one))[1]: one for one in templates}
    zone = region_and_zone(_labels_of(model.template))[1]
    found = by_zone.get(zone) or by_zone.get("")
    if found is None:
        has = f"is in zone {zone}" if zone else "has no zone"
        offered = f"{_type_of(templates[0])} is offered only in {', '.join(sorted(by_zone))}"
        raise InputError(_LIKE, f"node {model.name} {has}, but {offered}")
    return found


def _dependents(model: str, inventory: Inventory) -> list[Manifest]:
    """Return the CSINode of the node `model` and the ResourceSlices with its devices.

    Raises InputError for a malformed ResourceSlice.
    """
    csi = inventory.get(CSI_NODE, "", model)
    slices = []
    for one in inventory.of_kind(RESOURCE_SLICE):
        one.require_right_types()
        if one.value.get("spec", {}).get("nodeName") == model:
            slices.append(one)
    return slices if csi is None else [csi, *slices]


def _own_labels(model: Manifest, inventory: Inventory) -> tuple[str, ...]:
    """Return the keys of the labels of the node `model` whose values name the node itself."""
    csi = inventory.get(CSI_NODE, "", model.ref.name)
    drivers = () if csi is None else decode_as(CSINode, csi.value).spec.drivers
    topology = (key for driver in drivers for key in driver.topology_keys)
    return own_labels(model.value["metadata"].get("labels") or {}, model.ref.name, topology)


def _own_capacities(model: str, own: Sequence[str], inventory: Inventory) -> list[Json]:
    """Return the CSIStorageCapacities that describe only the node `model`.

    Their topology selects the node by a label in `own`, the result of `_own_labels`.
    """
    return [
        one.value
        for one in inventory.of_kind(CSI_STORAGE_CAPACITY)
        if any(_topology(one.value).get(key) == model for key in own)
    ]


def _topology(capacity: Json) -> Json:
    return (capacity.get("nodeTopology") or {}).get("matchLabels") or {}


def _copied_capacity(capacity: Json, own: Sequence[str], name: str) -> Json:
    """Return a copy of the CSIStorageCapacity `capacity` for the new node `name`.

    `own` is the result of `_own_labels`: in the copy, these labels have the value `name`.
    """
    meta, before = capacity["metadata"], _topology(capacity)
    labels = {key: name if key in own else value for key, value in before.items()}
    named = {"name": f"{meta['name']}-{name}", "namespace": meta.get("namespace", "")}
    topology = {**capacity["nodeTopology"], "matchLabels": labels}
    return {**capacity, "metadata": named, "nodeTopology": topology}


def _type_of(node: Json) -> object:
    return _labels_of(node).get(INSTANCE_TYPE)


def _labels_of(node: Json) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}


def _free_names(count: int, inventory: Inventory) -> Iterator[str]:
    """Yield `count` numbered names that no node has."""
    number, width = 0, len(str(count))
    while count:
        number += 1
        name = f"{NAME}-{number:0{width}}"
        if inventory.get(NODE, "", name) is None:
            yield name
            count -= 1


def _with_all_devices(template: Json) -> Json:
    """Return the node `template` with allocatable set to capacity for extended resources."""
    status = template["status"]
    if "allocatable" not in status or "capacity" not in status:
        return template
    allocatable = with_all_devices(status["allocatable"], status["capacity"])
    return {**template, "status": {**status, "allocatable": allocatable}}


def _merged(model: Json, template: Json) -> Json:
    """Return `model` with the labels and the size of `template`, which has an instance type."""
    before: Mapping[str, str] = model.get("metadata", {}).get("labels", {})
    changed = template["metadata"]["labels"]
    # If the zone changes, all labels that depend on the zone change too.
    found = labels_in_zone(before, changed[ZONE]) if ZONE in changed else dict(before)
    # A deprecated label gets the new value of the label that replaced it.
    for old, new in STABLE.items():
        if old in found and new in changed:
            found[old] = changed[new]
    labels = {key: value for key, value in {**found, **changed}.items() if value}
    return {"spec": {}, **model, "metadata": {"labels": labels}, "status": template["status"]}


def _node(name: str, template: Json, own: Sequence[str], start: Instant) -> Json:
    labels = {HOSTNAME: name, **template["metadata"]["labels"], **dict.fromkeys(own, name)}
    starting = starting_condition(format_timestamp(start))
    return {
        "apiVersion": NODE.api_version,
        "kind": NODE.kind,
        "metadata": {"name": name, "labels": labels},
        "spec": template["spec"],
        "status": {**template["status"], "conditions": [starting]},
    }
