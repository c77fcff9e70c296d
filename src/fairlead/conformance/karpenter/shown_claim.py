"""Converts requested NodeClaims to the form of the recordings."""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.codec import as_json
from fairlead.api.json import Json
from fairlead.api.timestamp import format_duration
from fairlead.conformance.karpenter.case import WELL_KNOWN, shown_pod
from fairlead.engine.autoscaling.karpenter.apis import NEVER, duration_or_never
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import NodeClaimRequest
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaimtemplate import template_labels
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import LabelRequirement
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import Requirements

_PLACEHOLDER: Final = re.compile(r"hostname-placeholder-\d+")
ANY_VALUE: Final = "<one of the requirement's values>"
ANY_NUMBER: Final = "<random number>"


def shown_text(text: str) -> str:
    """Return `text` with `<new-node>` instead of the placeholder names of new nodes."""
    return _PLACEHOLDER.sub("<new-node>", text)


def shown_claim(request: NodeClaimRequest) -> Json:
    """Return the NodeClaim that `request` asks for, with all fields that the recordings contain."""
    spec = request.pool.spec.template.spec
    found: Json = {
        "nodePool": request.pool.name,
        "pods": [shown_pod(key) for key in request.pods],
        "instanceTypes": [one.name for one in request.ordered_types],
        "cheapestPrice": {
            one.name: one.cheapest_price(request.requirements, WELL_KNOWN)
            for one in request.instance_types
        },
        "requirements": shown_requirements(request.stored_requirements),
        "requests": {name: amount for name, amount in request.requests.items() if amount},
        "labels": _labels(request),
    }
    if request.annotations is not None:
        found["annotations"] = dict(request.annotations)
    if spec.taints:
        found["taints"] = [as_json(one) for one in spec.taints]
    if spec.startup_taints:
        found["startupTaints"] = [as_json(one) for one in spec.startup_taints]
    found["expireAfter"] = shown_duration(spec.expire_after)
    if spec.termination_grace_period:
        found["terminationGracePeriod"] = shown_duration(spec.termination_grace_period)
    launch = shown_launch(request)
    if launch is not None:
        found["launch"] = launch
    if request.pool.is_static:
        del found["cheapestPrice"]
    return found


def shown_duration(text: str) -> str:
    """Return the duration `text` in Go's notation; `Never` stays as it is."""
    duration = duration_or_never(text)
    return NEVER if duration is None else format_duration(duration)


def shown_launch(request: NodeClaimRequest) -> Json | None:
    """Return the offering that the provider chooses for the machine of `request`.

    The field `ties` of the result contains the other available offerings with the same price.
    Returns None if no offering is available.
    """
    chosen = request.launch()
    if chosen is None:
        return None
    instance_type, offering = chosen
    requirements = request.stored_requirements
    ties = [
        f"{one.name}|{other.zone}|{other.capacity_type}"
        for one in sorted(request.instance_types, key=lambda one: one.name)
        for other in one.compatible_offerings(requirements, WELL_KNOWN)
        if other.available and other.price == offering.price and other is not offering
    ]
    found: Json = {
        "instanceType": instance_type.name,
        "zone": offering.zone,
        "capacityType": offering.capacity_type,
        "price": offering.price,
    }
    if offering.reservation_id:
        found["reservationID"] = offering.reservation_id
    return {**found, "ties": ties} if ties else found


def shown_requirements(requirements: Requirements) -> list[Json]:
    """Return the requirements in the form of the API, sorted by label."""
    return [
        entry
        for one in sorted(requirements, key=lambda one: one.key)
        for entry in api_requirement(one)
    ]


def api_requirement(requirement: LabelRequirement) -> list[Json]:
    """Return one requirement in the form of the API.

    The result has one entry, or two entries if the requirement has a lower and an upper bound.
    """
    more: Json = {} if requirement.min_values is None else {"minValues": requirement.min_values}
    bounds = (("Gte", requirement.gte), ("Lte", requirement.lte))
    stated = [(operator, str(bound)) for operator, bound in bounds if bound is not None]
    if stated:
        return [{"key": requirement.key, "operator": op, "values": [v], **more} for op, v in stated]
    values: Json = {"values": requirement.sorted_values()} if requirement.values else {}
    return [{"key": requirement.key, "operator": requirement.operator, **values, **more}]


def _labels(request: NodeClaimRequest) -> Json:
    fixed = template_labels(request.pool)
    return {
        key: value if key in fixed else _shown_choice(request.requirements.get(key), value)
        for key, value in request.labels.items()
    }


def _shown_choice(one: LabelRequirement, value: str) -> str:
    if one.complement:
        return ANY_NUMBER
    return value if len(one.values) == 1 else ANY_VALUE
