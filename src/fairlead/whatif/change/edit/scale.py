"""Parses the value of `--scale` (`deploy/x=20`): a workload and its new number of replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from fairlead.api.json import number, text
from fairlead.api.objects import HorizontalPodAutoscaler
from fairlead.api.pods.facts import controller_of
from fairlead.api.selector import SelectorError, parse_selector, selector_matches
from fairlead.api.text.count import counted
from fairlead.apiserver.kind import (
    DAEMON_SET,
    DEPLOYMENT,
    HORIZONTAL_POD_AUTOSCALER,
    JOB,
    NODE,
    POD,
    SCALABLE,
    STATEFUL_SET,
    Kind,
)
from fairlead.engine.core.command import PatchObject
from fairlead.whatif.change import commands
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.served_kind import is_custom
from fairlead.whatif.snapshot.validation.workload import WORKLOADS

REPLICAS_MAX: Final = 1_000_000
# Kinds with pods that fairlead fit refuses to copy: these pods belong to their nodes.
_NEVER_COPIED: Final = (DAEMON_SET.kind, NODE.kind)
_OWNERS_MAX: Final = 5  # custom resources that control each other
Accepts = Callable[[Manifest], bool]
"""Returns whether an option accepts an object."""


def parse_scale(source: str, text: str, inventory: Inventory, namespace: str = "") -> PatchObject:
    """Return the command that scales the workload in `text` (`deploy/x=20`, `sts/ns/x=3`).

    `namespace` is used if `text` contains no namespace. Raises InputError; the message names
    the option or file `source`.
    """
    target, sign, count = text.rpartition("=")
    if not sign:
        raise InputError(source, f"{text!r} is not WORKLOAD/NAME=REPLICAS, such as deploy/web=20")
    named = inventory.find(source, target, namespace, SCALABLE)
    workload = scalable_part(named, inventory) or named
    if workload.kind not in SCALABLE:
        known = ", ".join(kind.kind for kind in SCALABLE)
        controller = pod_controller_of(workload, inventory)
        if controller is None:
            hint = owned_hint(workload, inventory) or f"; only {known}"
        else:
            hint = (
                f"; only {known}"
                if controller is workload
                else f"; {controller.title} controls its pods"
            )
        if workload.kind is JOB:
            hint = f"; use --set {target}:spec.parallelism={count}"
        if controller is not None and controller is not workload:
            target = f"{controller.kind.kind.lower()}/{controller.ref.key}"
        is_copied = workload.kind.kind not in _NEVER_COPIED
        if is_copied and (controller is not None or any(True for _ in inventory.pods_of(workload))):
            hint += f"; fairlead fit --like {target} counts how many more of its pods fit"
        raise InputError(source, f"a {workload.kind.kind} cannot be scaled{hint}")
    return commands.scale(workload.ref, _replicas(source, workload.title, count))


def scalable_part(owner: Manifest, inventory: Inventory) -> Manifest | None:
    """Return the workload through which the custom resource `owner` runs all its pods.

    The result is the only workload of the SCALABLE kinds that `owner` controls and that has
    replicas. The result is None if there is no such workload, or if there are several, as during
    the update of an Argo Rollout.

    The result is also None if the workload's number of replicas is not `spec.replicas` of `owner`:
    the workload then has another purpose. For example, the only Deployment of a Kafka of Strimzi
    runs an operator, and other custom resources run the brokers. The result is also None if `owner`
    controls pods itself, or if `pod_controller_of` returns a resource. Last, the result is None if
    pods of the workload control StatefulSets. For example, each leader pod of a LeaderWorkerSet
    controls a StatefulSet, and for a new leader, the controller of the LeaderWorkerSet would create
    another StatefulSet.
    """
    if not is_custom(owner.kind.api_version) or any(True for _ in inventory.pods_of(owner)):
        return None
    if pod_controller_of(owner, inventory) is not None:
        return None
    owned = [one for one in _controlled(owner, inventory, SCALABLE) if _wanted(one)]
    if len(owned) != 1 or _wanted(owned[0]) != number(owner.value, "spec", "replicas"):
        return None
    return None if _pods_control(owned[0], inventory) else owned[0]


def _pods_control(workload: Manifest, inventory: Inventory) -> bool:
    """Return whether pods of `workload` control StatefulSets."""
    names = {
        owner.name
        for one in inventory.of_kind(STATEFUL_SET)
        if one.ref.namespace == workload.ref.namespace
        and (owner := one.controller) is not None
        and owner.kind == POD.kind
    }
    return bool(names) and any(pod.metadata.name in names for pod in inventory.pods_of(workload))


def control_hint(controller: Manifest) -> str:
    """Return the end of an error message, which tells the user to name `controller` instead.

    `controller` is a result of `pod_controller_of`.
    """
    return f"; {controller.title} controls its pods: name that instead"


def pod_controller_of(owner: Manifest, inventory: Inventory) -> Manifest | None:
    """Return the custom resource that controls the pods of the custom resource `owner`.

    The result is `owner`, a custom resource that `owner` controls, or the controller of pods that
    the scale subresource of `owner` selects. If several of these resources control pods, the result
    is the resource that controls the most pods. The result is None if none of these resources
    controls pods. The result is also None if one of these resources controls a workload that wants
    at least as many pods. For example, a Kafka of Strimzi controls StrimziPodSets and a Deployment.
    The result is a StrimziPodSet, because the StrimziPodSets control the pods of the brokers, and
    the Deployment only runs an operator.
    """
    if not is_custom(owner.kind.api_version):
        return None
    custom = [kind for kind in inventory.kinds if is_custom(kind.api_version)]
    found, owners = [owner, *_selected_owners(owner, inventory, custom)], [owner]
    for _ in range(_OWNERS_MAX):
        owners = [one for each in owners for one in _controlled(each, inventory, custom)]
        found += owners
    counts = [sum(1 for _ in inventory.pods_of(one)) for one in found]
    most = max(counts)
    owned = (one for each in found for one in _controlled(each, inventory, SCALABLE))
    if most <= max(map(_wanted, owned), default=0):
        return None
    return found[counts.index(most)]


def _selected_owners(
    owner: Manifest, inventory: Inventory, kinds: Iterable[Kind]
) -> Iterator[Manifest]:
    """Yield the objects of `kinds` that control pods of the scale subresource of `owner`.

    The selector of the subresource is usually in one of two fields of the status.
    """
    stated = text(owner.value, "status", "labelSelector") or text(owner.value, "status", "selector")
    try:
        selector = parse_selector(stated) if stated else None
    except SelectorError:
        selector = None
    if selector is None:
        return
    namespace = owner.ref.namespace
    near = [
        one for kind in kinds for one in inventory.of_kind(kind) if one.ref.namespace == namespace
    ]
    selected = (
        controller_of(pod.metadata)
        for pod in inventory.pods_of(*near)
        if selector_matches(selector, pod.metadata.labels)
    )
    names = {(one.kind, one.api_version, one.name) for one in selected if one is not None}
    yield from (one for one in near if any(one.is_named_by(*name) for name in names))


def owned_hint(owner: Manifest, inventory: Inventory, accepts: Accepts | None = None) -> str:
    """Return a hint that names an object that `owner` controls and that the option accepts.

    `accepts` returns whether the option accepts an object; by default, the option accepts the
    SCALABLE kinds. If `owner` controls no accepted object itself, the hint names an object that
    `owner` controls through other custom resources. For example, a Service of Knative controls its
    Deployments through other custom resources. If several objects are accepted, the hint names the
    object with the most replicas. Return "" if no object is accepted. Example: `owner` is a
    DeploymentConfig of OpenShift, and the hint names its ReplicationController.
    """
    custom = [kind for kind in inventory.kinds if is_custom(kind.api_version)]
    owners = [owner]
    for _ in range(_OWNERS_MAX):
        owned = [
            one for each in owners for one in _controlled(each, inventory, (*WORKLOADS, *custom))
        ]
        named = filter(accepts or (lambda one: one.kind in SCALABLE), owned)
        largest = max(named, key=lambda one: (_wanted(one), one.ref.name), default=None)
        if largest is not None:
            return f"; name its {largest.title}"
        owners = [one for one in owned if is_custom(one.kind.api_version)]
    return ""


def _controlled(owner: Manifest, inventory: Inventory, kinds: Iterable[Kind]) -> Iterator[Manifest]:
    """Yield the objects of `kinds` that `owner` controls."""
    for kind in kinds:
        yield from (one for one in inventory.of_kind(kind) if one.is_controlled_by(owner))


def other_scaler(workload: Manifest, replicas: int, inventory: Inventory) -> str:
    """Return a note about what else scales `workload` in the cluster; "" if nothing scales it.

    `replicas` is the number of replicas to which the user scales the workload.

    The note names the owner of the workload's HorizontalPodAutoscaler, such as a ScaledObject of
    KEDA. If this autoscaler has no owner, and `metric_scaler` returns the autoscaler, the result is
    "". In all other cases, the note names the Deployment or the custom resource that owns the
    workload.
    """
    autoscaler = autoscaler_of(workload, inventory)
    above = None if autoscaler is None else autoscaler.controller
    if (
        autoscaler is not None and above is not None
    ):  # a ScaledObject of KEDA also scales from and to 0
        name = f"{above.kind} {autoscaler.ref.namespace}/{above.name}"
        return (
            f"{name} and its {autoscaler.title} scale {workload.title} again; their triggers and "
            "metrics are not simulated."
        )
    if metric_scaler(workload, replicas, inventory) is not None:
        return ""
    owner = workload.controller
    if owner is not None and owner.kind == DEPLOYMENT.kind:
        return (
            f"{owner.kind} {workload.ref.namespace}/{owner.name} owns {workload.title} and sets "
            "its replicas again."
        )
    if owner is not None and is_custom(owner.api_version):
        return (
            f"{owner.kind} {workload.ref.namespace}/{owner.name} owns {workload.title} and "
            "may set its replicas again; its controller is not simulated."
        )
    return ""


def metric_scaler(workload: Manifest, replicas: int, inventory: Inventory) -> Manifest | None:
    """Return the HorizontalPodAutoscaler that scales `workload` again after a change to `replicas`.

    Return None if `workload` has no autoscaler, or if another object owns the autoscaler
    (`other_scaler`). Also return None if `replicas` is 0 and minReplicas is not 0, because the
    autoscaler is then off.

    upstream: pkg/controller/podautoscaler/horizontal.go: reconcileAutoscaler (ScalingDisabled)
    """
    found = autoscaler_of(workload, inventory)
    if found is None or found.controller is not None:
        return None
    is_off = not replicas and found.as_view(HorizontalPodAutoscaler).spec.min_replicas
    return None if is_off else found


def refused_scale(autoscaler: Manifest, workload: Manifest, replicas: int) -> str:
    """Return a note if the limits of `autoscaler` do not allow `replicas`; "" if they do.

    `workload` is the workload that `autoscaler` scales. In the run, the autoscaler scales only
    workloads of built-in kinds. So the note is about a custom resource.
    """
    spec = autoscaler.as_view(HorizontalPodAutoscaler).spec
    least, most = spec.min_replicas, spec.max_replicas
    if not is_custom(workload.kind.api_version) or least <= replicas <= most:
        return ""
    return (
        f"{autoscaler.title} allows {least:,} to {most:,} replicas of {workload.title}, so it does "
        f"not keep {replicas:,}. Here, {replicas:,} replicas stay, because the controller of "
        f"{workload.kind.kind}s is not simulated."
    )


def metric_scalers_note(scaled: Sequence[tuple[Manifest, Manifest]]) -> str:
    """Return a note about the autoscalers that scale workloads again.

    `scaled` contains pairs (autoscaler, workload), and is not empty. Notes of the run report what
    the autoscalers do in the simulation (`pod_autoscaler.metric_notes`).
    """
    autoscaler, workload = scaled[0]
    others = len(scaled) - 1
    do = "does" if others == 1 else "do"
    more = f"; {counted(others, 'more autoscaler')} {do} the same" if others else ""
    return f"{autoscaler.title} scales {workload.title} again by its metrics{more}."


def autoscaler_of(found: Manifest, inventory: Inventory) -> Manifest | None:
    """Return the HorizontalPodAutoscaler of the workload `found`; None if there is none.

    Raises InputError for a HorizontalPodAutoscaler that is malformed.
    """
    for one in inventory.of_kind(HORIZONTAL_POD_AUTOSCALER):
        if one.ref.namespace != found.ref.namespace:
            continue
        target = one.as_view(HorizontalPodAutoscaler).spec.scale_target_ref
        if found.is_named_by(target.kind, target.api_version, target.name):
            return one
    return None


def _wanted(found: Manifest) -> int:
    spec = found.value.get("spec")
    wanted = spec.get("replicas") if isinstance(spec, dict) else None
    return wanted if isinstance(wanted, int) else 1


def _replicas(source: str, workload: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise InputError(source, f"{text!r} is not a number of replicas", object_name=workload)
    if len(text) > len(str(REPLICAS_MAX)) or int(text) > REPLICAS_MAX:
        problem = f"{text} replicas are more than {REPLICAS_MAX}"
        raise InputError(source, problem, object_name=workload)
    return int(text)
