"""--apply-vpa: sets the requests that VerticalPodAutoscalers recommend in their status.

The recommended target of each container becomes its request in the pod template of the VPA's
workload, and a rollout follows, as with --set-resources. A target outside `minAllowed` and
`maxAllowed` is capped to them. Limits keep their ratio to the requests.
With `controlledValues: RequestsOnly`, limits do not change, and a request is at most its limit.
Containers with mode Off do not change. The VPA's update mode is ignored, because the option
requests the change.

upstream: autoscaler/vertical-pod-autoscaler/pkg/utils/vpa/limit_and_request_scaling.go,
capping.go
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.objects import CrossVersionObjectReference, QuantityText, ResourceList
from fairlead.api.quantity import Quantity, QuantityError, canonical, parse_quantity, round_up
from fairlead.apiserver.kind import (
    DAEMON_SET,
    DEPLOYMENT,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Kind,
)
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

OPTION: Final = "--apply-vpa"
VERTICAL_POD_AUTOSCALER: Final = Kind(
    "autoscaling.k8s.io", "v1", "VerticalPodAutoscaler", "verticalpodautoscalers", is_custom=True
)
_TEMPLATED: Final = {
    one.kind: one
    for one in (DEPLOYMENT, STATEFUL_SET, DAEMON_SET, REPLICA_SET, REPLICATION_CONTROLLER)
}
_ALL_CONTAINERS: Final = "*"
# Upstream scales CPU in thousandths and all other resources in whole units.
_UNITS: Final = {"cpu": 1_000_000}
_WHOLE: Final = 1_000_000_000


class _Policy(msgspec.Struct, rename="camel"):
    container_name: str = _ALL_CONTAINERS
    mode: str = "Auto"
    controlled_values: str = "RequestsAndLimits"
    min_allowed: ResourceList = {}
    max_allowed: ResourceList = {}


class _Recommendation(msgspec.Struct, rename="camel"):
    container_name: str
    target: ResourceList = {}


class _ResourcePolicy(msgspec.Struct, rename="camel"):
    container_policies: list[_Policy] = []


class _Spec(msgspec.Struct, rename="camel"):
    target_ref: CrossVersionObjectReference | None = None
    resource_policy: _ResourcePolicy | None = None


class _Recommendations(msgspec.Struct, rename="camel"):
    container_recommendations: list[_Recommendation] = []


class _Status(msgspec.Struct, rename="camel"):
    recommendation: _Recommendations | None = None


class _Form(msgspec.Struct):
    """The spec and status of a VerticalPodAutoscaler, with the fields that --apply-vpa reads."""

    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def recommendations(self) -> list[_Recommendation]:
        """The recommendation of each container."""
        found = self.status.recommendation
        return [] if found is None else found.container_recommendations

    def policy(self, container: str) -> _Policy:
        """Return the policy for `container`, or else the policy for all containers (`*`)."""
        policy = self.spec.resource_policy
        stated = [] if policy is None else policy.container_policies
        by_name = {one.container_name: one for one in stated}
        return by_name.get(container) or by_name.get(_ALL_CONTAINERS) or _Policy()


class RecommendedEdit(Struct, frozen=True):
    """A workload and its content with the recommended requests; `note` describes the changes.

    `target` is None if the VPA has no effect; `note` then contains the reason.
    """

    target: Manifest | None
    content: Json
    note: str


def recommended_edits(inventory: Inventory, namespace: str) -> Iterator[RecommendedEdit]:
    """Yield the edits that the VPAs of `namespace` recommend, in the order of the VPAs in the dump.

    `namespace` "" means every namespace. Each edit starts from the current workload in `inventory`,
    so that it includes the previous edits. Raises InputError if no VPA has a recommendation, and
    for a malformed VPA.
    """
    vpas = inventory.of_kind(VERTICAL_POD_AUTOSCALER)
    read = [(one, _form(one)) for one in vpas if namespace in ("", one.ref.namespace)]
    if not any(form.recommendations for _, form in read):
        where = f"namespace {namespace}" if namespace else "the snapshot"
        raise InputError(OPTION, f"{where} has no VerticalPodAutoscaler with a recommendation")
    for manifest, form in read:
        yield _edit(manifest, form, inventory)


def _form(manifest: Manifest) -> _Form:
    try:
        return msgspec.convert(manifest.value, _Form)
    except msgspec.ValidationError as cause:
        problem, _, path = str(cause).partition(" - at `$")
        shown = problem[0].lower() + problem[1:].replace("`", "")
        raise manifest.refuse(shown, field=path.rstrip("`").removeprefix(".")) from None


def _edit(vpa: Manifest, form: _Form, inventory: Inventory) -> RecommendedEdit:
    if not form.recommendations:
        return RecommendedEdit(None, {}, f"{vpa.title} has no recommendation yet.")
    reference = form.spec.target_ref
    kind = None if reference is None else _TEMPLATED.get(reference.kind)
    if reference is None or kind is None:
        stated = "no target" if reference is None else f"a {reference.kind} as its target"
        return RecommendedEdit(None, {}, f"{vpa.title} has {stated}, so it is not applied.")
    target = inventory.get(kind, vpa.ref.namespace, reference.name)
    if target is None:
        missing = f"{kind.kind} {vpa.ref.namespace}/{reference.name}"
        return RecommendedEdit(None, {}, f"{vpa.title}: there is no {missing}, so nothing changes.")
    target.require_right_types()
    content = copy.deepcopy(target.value)
    changes = list(_changes(vpa, form, content))
    if not changes:
        return RecommendedEdit(None, {}, f"{vpa.title} changes no request of {target.title}.")
    return RecommendedEdit(target, content, f"{target.title}: {'; '.join(changes)}.")


def _changes(vpa: Manifest, form: _Form, content: Json) -> Iterator[str]:
    """Set the recommended amounts in `content`; yield a description of each change.

    Raises InputError for a recommended or allowed amount that is malformed.
    """
    recommended = {one.container_name: one.target for one in form.recommendations}
    spec = content.get("spec", {}).get("template", {}).get("spec", {})
    for container in spec.get("containers", []):
        name = container.get("name", "")
        policy = form.policy(name)
        if name not in recommended or policy.mode == "Off":
            continue
        resources = container.setdefault("resources", {})
        where = f"status.recommendation.containerRecommendations.{name}.target"
        for resource, amount in recommended[name].items():
            target = _allowed(vpa, resource, _amount(vpa, f"{where}.{resource}", amount), policy)
            if change := _set(resources, resource, target, policy):
                yield f"container {name} {change}"


def _amount(vpa: Manifest, field: str, text: QuantityText) -> Quantity:
    """Return the amount `text` in `field` of `vpa`. Raises InputError if it is malformed."""
    try:
        return parse_quantity(text)
    except QuantityError as cause:
        raise vpa.refuse(str(cause), field=field) from None


def _allowed(vpa: Manifest, resource: str, target: Quantity, policy: _Policy) -> Quantity:
    """Return `target`, capped to minAllowed and then to maxAllowed of `policy`.

    A bound of zero has no effect. upstream: capping.go: applyVPAPolicy
    """
    where = f"spec.resourcePolicy.containerPolicies.{policy.container_name}"
    for field, bounds, cap in (
        ("minAllowed", policy.min_allowed, max),
        ("maxAllowed", policy.max_allowed, min),
    ):
        if resource in bounds:
            bound = _amount(vpa, f"{where}.{field}.{resource}", bounds[resource])
            target = cap(target, bound) if bound.nano else target
    return target


def _set(resources: Json, resource: str, target: Quantity, policy: _Policy) -> str:
    """Set a request and, unless `policy` forbids it, its limit; return a description of the change.

    The result is "" if the request does not change.
    """
    requests, limits = resources.setdefault("requests", {}), resources.get("limits") or {}
    before, limit = requests.get(resource), limits.get(resource)
    if limit is not None and policy.controlled_values == "RequestsOnly":
        target = min(target, parse_quantity(limit))
    elif limit is not None:
        limits[resource] = canonical(_scaled_limit(resource, limit, before, target))
    if before is not None and parse_quantity(before) == target:
        return ""
    requests[resource] = canonical(target)
    return f"requests {resource} {requests[resource]} instead of {before or 'nothing'}"


def _scaled_limit(
    resource: str, limit: QuantityText, request: QuantityText | None, target: Quantity
) -> Quantity:
    """Return the limit that has the same ratio to `target` as `limit` has to `request`."""
    stated = parse_quantity(limit)
    known = stated if request is None else parse_quantity(request)
    if not known.nano or known == stated:
        return target
    unit = _UNITS.get(resource, _WHOLE)
    parts = (round_up(one.nano, unit) for one in (stated, target, known))
    numerator, factor, denominator = parts
    return Quantity(nano=numerator * factor // denominator * unit, format=target.format)
