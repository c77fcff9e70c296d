"""--apply-vpa: sets the requests that VerticalPodAutoscalers recommend in their status.

The recommended target of each container becomes its request in the pod template of the VPA's
workload. A rollout follows, as with --set-resources. A target is capped to the bounds that
LimitRanges set for containers, then to `minAllowed` and `maxAllowed`. Limits keep their ratio to
the requests.

If `controlledValues` is RequestsOnly, limits do not change, and a request is at most its limit.
Containers with mode Off do not change. A VPA is applied in every update mode. If a workload has
several VPAs, only one is applied (`_controlling`).

Even if --apply-vpa is not set, the VPA's admission webhook replaces the requests of new pods with
the recommendation, except in the update mode Off (`pod_recommendations`).

upstream: autoscaler/vertical-pod-autoscaler/pkg/utils/vpa/limit_and_request_scaling.go,
capping.go, api.go, pkg/admission-controller/resource/vpa/matcher.go,
pkg/admission-controller/resource/pod/patch/resource_updates.go
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from fairlead.api.json import Json, mapping
from fairlead.api.objects import CrossVersionObjectReference, QuantityText, ResourceList
from fairlead.api.quantity import Quantity, QuantityError, canonical, parse_quantity
from fairlead.apiserver.admission.observed_mutation import OF_VERTICAL_AUTOSCALER
from fairlead.apiserver.kind import (
    DAEMON_SET,
    DEPLOYMENT,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Kind,
)
from fairlead.whatif.change.edit.container_range import (
    AdmittedResources,
    ContainerRange,
    container_range,
)
from fairlead.whatif.change.edit.edited_field import Place
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
Target = tuple[str, str, str]
"""The namespace, the kind and the name of a workload."""


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


class _UpdatePolicy(msgspec.Struct, rename="camel"):
    update_mode: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    target_ref: CrossVersionObjectReference | None = None
    update_policy: _UpdatePolicy | None = None
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
        """The recommended amounts of each container, from the status."""
        found = self.status.recommendation
        return [] if found is None else found.container_recommendations

    @property
    def update_mode(self) -> str:
        """The update mode; upstream: api.go: GetUpdateMode."""
        policy = self.spec.update_policy
        return (policy.update_mode if policy is not None else None) or "Auto"

    @property
    def is_off(self) -> bool:
        """Whether the update mode is Off."""
        return self.update_mode == "Off"

    def target(self, namespace: str) -> Target:
        """Return (namespace, kind, name) of the workload that this VPA refers to.

        `namespace` is the namespace of the VPA. Kind and name are "" if the VPA refers to no
        workload.
        """
        reference = self.spec.target_ref
        return (namespace, reference.kind, reference.name) if reference else (namespace, "", "")

    def policy(self, container: str) -> _Policy:
        """Return the policy for `container`, or else the policy for all containers (`*`)."""
        policy = self.spec.resource_policy
        stated = [] if policy is None else policy.container_policies
        by_name = {one.container_name: one for one in stated}
        return by_name.get(container) or by_name.get(_ALL_CONTAINERS) or _Policy()


class RecommendedEdit(Struct, frozen=True):
    """A workload and its content with the recommended requests; `note` describes the changes.

    `places` maps the path of each changed amount to `--apply-vpa`, the option that changes it. If
    the VPA has no effect, `target` is None, and `note` contains the reason.
    """

    target: Manifest | None
    content: Json
    note: str
    places: dict[Place, str] = {}


def recommended_edits(inventory: Inventory, namespace: str) -> Iterator[RecommendedEdit]:
    """Yield one edit for each VPA of `namespace`, in the order of the VPAs in the dump.

    `namespace` "" means every namespace. Each edit starts from the workload in `inventory`. The
    caller must store the edited workload in `inventory` before it requests the next edit. Raises
    InputError if no VPA has a recommendation, and for a malformed VPA.
    """
    read = _read(inventory, namespace)
    if not any(form.recommendations for _, form in read):
        where = f"namespace {namespace}" if namespace else "the dump"
        raise InputError(OPTION, f"{where} has no VerticalPodAutoscaler with a recommendation")
    controlling = _controlling(read)
    for manifest, form in read:
        yield _edit(manifest, form, controlling, inventory)


class PodRecommendation(Struct, frozen=True):
    """The recommendation of the VPA that sets the requests of a workload's new pods."""

    vpa: Manifest
    form: _Form

    def apply(self, spec: Json, limits: ContainerRange) -> Iterator[str]:
        """Set the recommended amounts in the pod spec `spec`; yield a description of each change.

        `limits` are the bounds and defaults that the LimitRanges of the namespace set. Raises
        InputError for a malformed amount.
        """
        yield from _changes(self.vpa, self.form, spec, limits, {})

    def note(self, target: Target, changes: Iterable[str]) -> str:
        """Return a note that the VPA makes `changes` to the requests of new pods of `target`."""
        namespace, kind, name = target
        named = f"{self.vpa.kind.kind.lower()}/{self.vpa.ref.key}"
        return (
            f"{self.vpa.title} (update mode {self.form.update_mode}) sets the requests of new pods "
            f"of {kind} {namespace}/{name}: {'; '.join(changes)}. A what-if with --delete {named} "
            "leaves it out."
        )


def pod_recommendations(vpas: Iterable[Manifest]) -> dict[Target, PodRecommendation]:
    """Return the recommendations that admission applies to new pods, by workload.

    VPAs with a malformed field are left out.
    """
    read: list[tuple[Manifest, _Form]] = []
    for vpa in vpas:
        with suppress(InputError):
            read.append((vpa, _form(vpa)))
    forms = {vpa.ref: form for vpa, form in read}
    return {
        target: PodRecommendation(vpa, forms[vpa.ref])
        for target, vpa in _controlling(read).items()
        if forms[vpa.ref].recommendations and not forms[vpa.ref].is_off
    }


def absent_autoscaler(before: Manifest | None, after: Manifest, inventory: Inventory) -> str:
    """Return a note if a VPA that the dump lacks sets the requests of new pods of `after`.

    `before` is the workload before the change. `inventory` has the objects before the change. Such
    a VPA is recognized by an annotation that it has written to a pod of `before`. Return "" if the
    change does not set resources in the pod template, or if the dump has any VPA.
    """
    if before is None or not _changes_resources(before, after) or _read(inventory, ""):
        return ""
    owned = [one for one in inventory.of_kind(REPLICA_SET) if one.is_controlled_by(before)]
    pods = (pod for owner in (before, *owned) for pod in inventory.pods_of(owner))
    if not any(key in pod.metadata.annotations for pod in pods for key in OF_VERTICAL_AUTOSCALER):
        return ""
    return (
        f"A VerticalPodAutoscaler sets the requests of pods of {after.title}. The dump lacks it, "
        "so new pods get the requests of their template here. Add the output of kubectl get vpa -A "
        "-o json to the dump."
    )


def _changes_resources(before: Manifest | None, after: Manifest) -> bool:
    """Return whether the pod templates of `before` and `after` have different resources."""
    if after.kind not in _TEMPLATED.values():
        return False
    return before is None or _stated_resources(before) != _stated_resources(after)


def _stated_resources(workload: Manifest) -> list[Json | None]:
    """Return the resources of each container in the pod template of `workload`."""
    spec = workload.value.get("spec", {}).get("template", {}).get("spec", {})
    return [one.get("resources") for one in spec.get("containers", [])]


def _read(inventory: Inventory, namespace: str) -> list[tuple[Manifest, _Form]]:
    """Return the VPAs of `namespace`; "" means every namespace."""
    vpas = inventory.of_kind(VERTICAL_POD_AUTOSCALER)
    return [(one, _form(one)) for one in vpas if namespace in ("", one.ref.namespace)]


def _form(manifest: Manifest) -> _Form:
    try:
        return msgspec.convert(manifest.value, _Form)
    except msgspec.ValidationError as cause:
        problem, _, path = str(cause).partition(" - at `$")
        shown = problem[0].lower() + problem[1:].replace("`", "")
        raise manifest.refuse(shown, field=path.rstrip("`").removeprefix(".")) from None


def _controlling(read: Iterable[tuple[Manifest, _Form]]) -> dict[Target, Manifest]:
    """Return the VPA that controls the pods of each target.

    Among the VPAs of one target, the oldest VPA has control. If several VPAs are equally old, the
    first by name has control. A VPA with the update mode Off controls the pods only if all VPAs of
    the target have this mode.

    upstream: matcher.go: GetMatchingVPA, api.go: Stronger
    """
    found: dict[Target, Manifest] = {}
    for vpa, form in sorted(read, key=lambda one: (one[1].is_off, *_age(one[0]))):
        found.setdefault(form.target(vpa.ref.namespace), vpa)
    return found


def _age(vpa: Manifest) -> tuple[str, str]:
    """Return a sort key: the time of creation, then the name; the oldest VPA comes first."""
    return vpa.value["metadata"].get("creationTimestamp") or "", vpa.ref.name


def _edit(
    vpa: Manifest, form: _Form, controlling: Mapping[Target, Manifest], inventory: Inventory
) -> RecommendedEdit:
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
    strongest = controlling[form.target(vpa.ref.namespace)]
    if strongest is not vpa:
        reason = f"{strongest.title} controls {target.title}"
        return RecommendedEdit(None, {}, f"{vpa.title} is not applied, because {reason}.")
    target.require_right_types()
    content = copy.deepcopy(target.value)
    limits = container_range(inventory, target.ref.namespace)
    places: dict[Place, str] = {}
    spec = mapping(content, "spec", "template", "spec")
    changes = list(_changes(vpa, form, spec, limits, places))
    if not changes:
        return RecommendedEdit(None, {}, f"{vpa.title} changes no request of {target.title}.")
    note = f"{target.title}: {'; '.join(changes)}."
    return RecommendedEdit(target, content, note, places)


def _changes(
    vpa: Manifest, form: _Form, spec: Json, limits: ContainerRange, places: dict[Place, str]
) -> Iterator[str]:
    """Set the recommended amounts in the pod spec `spec`; yield a description of each change.

    `form` is the content of `vpa`. `limits` are the bounds and defaults that the LimitRanges of the
    namespace set. The paths of the changed amounts in the template of a workload are added to
    `places`. Raises InputError for a malformed amount.
    """
    recommended = {one.container_name: one.target for one in form.recommendations}
    containers = zip(spec.get("containers", []), limits.admitted(spec), strict=True)
    for number, (container, admitted) in enumerate(containers):
        name = container.get("name", "")
        policy = form.policy(name)
        if name not in recommended or policy.mode == "Off":
            continue
        where = f"status.recommendation.containerRecommendations.{name}.target"
        for resource, amount in recommended[name].items():
            recommended_amount = _amount(vpa, f"{where}.{resource}", amount)
            capped = limits.capped(resource, recommended_amount, admitted)
            target = _allowed(vpa, resource, capped, policy)
            before = container.get("resources") or {}
            if change := _set(container, resource, target, policy, admitted):
                requested = parse_quantity(container["resources"]["requests"][resource])
                change += _why_not_recommended(
                    recommended=recommended_amount,
                    capped=capped,
                    allowed=target,
                    requested=requested,
                )
                for part, amounts in container["resources"].items():
                    if amounts != before.get(part):
                        place = ("spec", "template", "spec", "containers", number)
                        places[*place, "resources", part, resource] = OPTION
                yield f"container {name} {change}"


def _why_not_recommended(
    *, recommended: Quantity, capped: Quantity, allowed: Quantity, requested: Quantity
) -> str:
    """Return why the amount `requested` is not the `recommended` amount; "" if it is.

    `capped` is the amount within the LimitRanges, and `allowed` the amount that the policy allows.
    """
    if requested == recommended:
        return ""
    most = "at most" if requested < recommended else "at least"
    if requested != allowed:
        bound = f"the limit, which the VPA keeps, allows {most}"
    elif allowed != capped:
        bound = f"its {'maxAllowed' if allowed < capped else 'minAllowed'} is"
    else:
        bound = f"LimitRanges of the namespace allow {most}"
    return f" (the VPA recommends {canonical(recommended)}, but {bound} {canonical(requested)})"


def _amount(vpa: Manifest, field: str, text: QuantityText) -> Quantity:
    """Return the amount `text` in `field` of `vpa`. Raises InputError if it is malformed."""
    try:
        return parse_quantity(text)
    except QuantityError as cause:
        raise vpa.refuse(str(cause), field=field) from None


def _allowed(vpa: Manifest, resource: str, target: Quantity, policy: _Policy) -> Quantity:
    """Return `target`, raised to minAllowed and then lowered to maxAllowed of `policy` if needed.

    `target` is the amount of `resource` that `vpa` recommends. A bound of zero has no effect.
    upstream: capping.go: applyVPAPolicy
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


def _set(
    container: Json, resource: str, target: Quantity, policy: _Policy, admitted: AdmittedResources
) -> str:
    """Set the container's request for `resource` to `target`; return a description of the change.

    `admitted` has the requests and limits of the container after LimitRanges set defaults. If
    `policy` controls only requests, an existing limit does not change, and the request is at most
    the limit. Otherwise, the limit changes in proportion. The result is "" if the request does not
    change.
    """
    resources = dict(container.get("resources") or {})
    requests, limits = ({**(resources.get(of) or {})} for of in ("requests", "limits"))
    before, limit = admitted.requests.get(resource), admitted.limits.get(resource)
    if policy.controlled_values == "RequestsOnly":
        target = target if limit is None else min(target, limit)
    elif (scaled := admitted.scaled_limit(resource, target)) is not None:
        limits[resource] = canonical(scaled)
        resources["limits"] = limits
    if before == target:
        return ""
    stated = requests.get(resource) or ("nothing" if before is None else canonical(before))
    requests[resource] = canonical(target)
    container["resources"] = {**resources, "requests": requests}
    change = f"requests {resource} {requests[resource]} instead of {stated}"
    new_limit = limits.get(resource)
    if limit is None or new_limit is None or parse_quantity(new_limit) == limit:
        return change
    return f"{change}, limit {new_limit} instead of {canonical(limit)}"
