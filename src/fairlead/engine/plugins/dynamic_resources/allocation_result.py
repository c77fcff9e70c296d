"""Builds status.allocation from the chosen devices: results, configuration and node selector.

upstream: allocator_stable.go: Allocate (its second half), createNodeSelector
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairlead.api.json import Json
from fairlead.api.objects import (
    AllocatedDevice,
    AllocatedDevices,
    ClaimAllocation,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from fairlead.engine.plugins.dynamic_resources.device_request import (
    AllocationError,
    ClaimWishes,
    ResolvedRequest,
)
from fairlead.engine.state.devices.device_pools import PoolDevice

Taken = tuple[ResolvedRequest, PoolDevice]


def allocation_of(claim: ClaimWishes, taken: Sequence[Taken]) -> ClaimAllocation:
    """The allocation for the devices in `taken`. Raises AllocationError."""
    results = tuple(
        AllocatedDevice(
            request=wish.full_name,
            driver=one.id[0],
            pool=one.id[1],
            device=one.id[2],
            admin_access=bool(wish.spec.admin_access),
            tolerations=wish.spec.tolerations,
        )
        for wish, one in taken
    )
    devices = AllocatedDevices(results=results, config=tuple(_configs(claim, taken)))
    return ClaimAllocation(devices=devices, node_selector=_node_selector([one for _, one in taken]))


def _chosen(claim: ClaimWishes, taken: Sequence[Taken]) -> list[ResolvedRequest]:
    """The alternative chosen for each request; the first one if the request got no devices."""
    got = {wish.parent: wish for wish, _ in taken}
    return [got.get(wishes[0].parent, wishes[0]) for wishes in claim.requests if wishes]


def _configs(claim: ClaimWishes, taken: Sequence[Taken]) -> Iterator[Json]:
    """Configuration of the classes, each once, then that of the claim where it applies."""
    chosen = _chosen(claim, taken)
    by_class: dict[str, list[ResolvedRequest]] = {}
    for wish in chosen:
        by_class.setdefault(wish.device_class.key, []).append(wish)
    for wishes in by_class.values():
        names = [wish.full_name for wish in wishes]
        for config in wishes[0].device_class.spec.config:
            yield _config("FromClass", names, config, len(chosen))
    for config in claim.claim.spec.devices.config:
        names = config.get("requests", [])
        if not names:
            yield _config("FromClaim", [], config, len(chosen))
        for wish in chosen:
            if wish.is_meant_by(names):
                yield _config("FromClaim", names, config, len(chosen))


def _config(source: str, names: Sequence[str], config: Json, requests: int) -> Json:
    """One entry; `requests` is empty if it applies to every request."""
    own = {key: value for key, value in config.items() if key != "requests"}
    named = {"requests": list(names)} if names and len(names) != requests else {}
    return {"source": source, **named, **own}


def _node_selector(devices: Sequence[PoolDevice]) -> NodeSelector | None:
    """The nodes that can use all `devices`, None for every node."""
    expressions: list[NodeSelectorRequirement] = []
    fields: list[NodeSelectorRequirement] = []
    for one in devices:
        spec = one.slice.spec
        reach = one.device if spec.per_device_node_selection else spec
        if reach.node_name:
            return _named(reach.node_name)
        if reach.node_selector is not None:
            for term in _terms(reach.node_selector):
                _add_new(term.match_expressions, expressions)
                _add_new(term.match_fields, fields)
    if not expressions and not fields:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(term,))


def _named(node: str) -> NodeSelector:
    name = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))


def _terms(selector: NodeSelector) -> tuple[NodeSelectorTerm, ...]:
    terms = selector.node_selector_terms
    if len(terms) > 1:
        raise AllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
    return terms


def _add_new(
    found: Sequence[NodeSelectorRequirement], known: list[NodeSelectorRequirement]
) -> None:
    for one in found:
        if not any(_says_the_same(one, other) for other in known):
            known.append(one)


def _says_the_same(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    is_alike = one.key == other.key and one.operator == other.operator
    return is_alike and sorted({*one.values}) == sorted({*other.values})
