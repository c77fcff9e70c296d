"""Validates the kinds of the API group `apps`, and ReplicationControllers and PodTemplates.

`check_deployment` and the similar functions apply every rule of their kind, in upstream's order.
The functions with `scheduled` in their names apply only the rules that simulations use.

upstream: pkg/apis/apps/validation/validation.go,
pkg/apis/core/validation/validation.go:ValidateReplicationControllerSpec
"""

from __future__ import annotations

from typing import Final

import msgspec

from fairlead.api.facts import values_of
from fairlead.api.json import Json
from fairlead.api.objects import (
    DaemonSet,
    Deployment,
    LabelSelector,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.selector import map_selector, selector_matches
from fairlead.apiserver.defaulting.workload import (
    daemon_set_strategy,
    deployment_strategy,
    stateful_set_strategy,
)
from fairlead.apiserver.error import Cause
from fairlead.apiserver.schema.raw_extension import differs_as_text
from fairlead.apiserver.validation.core.pod.spec import (
    check_new_scheduled_spec,
    check_no_ephemeral_template,
    check_runnable_spec,
    check_scheduled_spec,
    template_view,
)
from fairlead.apiserver.validation.core.pod.spec import check_template as check_pod_template
from fairlead.apiserver.validation.core.volume.claim import check_scheduled_claim
from fairlead.apiserver.validation.meta.field import (
    Causes,
    forbidden,
    invalid,
    non_negative,
    not_supported,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    IMMUTABLE,
    check_not_beyond_all,
    check_share,
    check_unchanged,
    is_nothing,
)
from fairlead.apiserver.validation.meta.object_meta import check_labels
from fairlead.apiserver.validation.meta.selector import check_label_selector

Replicated = Deployment | ReplicaSet | StatefulSet | DaemonSet

MISMATCH: Final = "`selector` does not match template `labels`"
_TEMPLATE: Final = "spec.template"
_STRATEGIES: Final = values_of("apps.v1.DeploymentStrategy", "type")
_UPDATE_STRATEGIES: Final = values_of("apps.v1.DaemonSetUpdateStrategy", "type")
_POD_MANAGEMENT: Final = values_of("apps.v1.StatefulSetSpec", "podManagementPolicy")
ONLY_THESE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)
_CHANGEABLE: Final = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_SHARES: Final = ("maxUnavailable", "maxSurge")


def check_scheduled_workload(workload: Replicated) -> Causes:
    """Yield the errors in those fields of a workload that its controller or the scheduler reads.

    The workload is a Deployment, ReplicaSet, StatefulSet or DaemonSet. The rules apply to new and
    to stored workloads.
    """
    yield from _check_before_template(workload)
    yield from check_scheduled_template(workload.spec.template)
    yield from _check_after_template(workload)


def check_scheduled_besides_template(workload: Replicated) -> Causes:
    """Yield the errors of `check_scheduled_workload` that do not concern the pod template."""
    yield from _check_before_template(workload)
    yield from _check_after_template(workload)


def _check_before_template(workload: Replicated) -> Causes:
    yield from non_negative("spec.replicas", workload.spec.replicas)
    yield from non_negative("spec.minReadySeconds", workload.spec.min_ready_seconds)
    if isinstance(workload, Deployment):
        yield from _check_progress_deadline(workload)
    yield from check_label_selector("spec.selector", workload.spec.selector)


def _check_after_template(workload: Replicated) -> Causes:
    for index, claim in enumerate(workload.spec.volume_claim_templates):
        yield from check_scheduled_claim(f"spec.volumeClaimTemplates[{index}]", claim)
    yield from _check_scheduled_strategy(workload)


def _check_scheduled_strategy(workload: Replicated) -> Causes:
    """Yield the errors that the update strategy has after its defaults are filled in."""
    spec = workload.spec
    match workload:
        case Deployment():
            update = {"strategy": msgspec.to_builtins(spec.strategy)}
            yield from _check_deployment_strategy(deployment_strategy(update))
        case StatefulSet():
            update = {"updateStrategy": msgspec.to_builtins(spec.update_strategy)}
            yield from _check_stateful_set_strategy(stateful_set_strategy(update))
        case DaemonSet():
            update = {"updateStrategy": msgspec.to_builtins(spec.update_strategy)}
            yield from _check_daemon_set_strategy(daemon_set_strategy(update))
        case _:
            return


def check_new_scheduled_workload(workload: Replicated) -> Causes:
    """Check the rules that apply only to new workloads; yield the errors."""
    template = workload.spec.template
    yield from _check_selector(workload)
    yield from _check_runs_for_ever(template, _template_owner_kind(workload))
    yield from check_new_template(template)


def _check_selector(workload: Replicated) -> Causes:
    """Yield the errors of the selector, which must be valid, not empty, and match the template."""
    selector = workload.spec.selector
    if selector is None and not isinstance(workload, DaemonSet):
        yield required("spec.selector")
    if selector == LabelSelector():
        kind = "deployment" if isinstance(workload, ReplicaSet) else type(workload).__name__.lower()
        yield invalid("spec.selector", {}, f"empty selector is invalid for {kind}")
    if any(True for _ in check_label_selector("", selector)):
        if isinstance(workload, Deployment | ReplicaSet):
            yield invalid("spec.selector", selector, "invalid label selector")
        elif isinstance(workload, StatefulSet):
            yield invalid("spec.selector", selector)
    else:
        yield from _check_matches(selector, workload.spec.template)


def _template_owner_kind(workload: Replicated) -> str:
    """Return the kind that appears in errors about the template of `workload`.

    Upstream checks the template of a Deployment as the template of a ReplicaSet.
    """
    return "ReplicaSet" if isinstance(workload, Deployment) else type(workload).__name__


def check_scheduled_controller(controller: ReplicationController) -> Causes:
    """Yield the errors in those fields that the controller manager or the scheduler reads.

    The rules apply to new and to stored ReplicationControllers.
    """
    yield from non_negative("spec.replicas", controller.spec.replicas)
    yield from check_labels("spec.selector", controller.spec.selector)
    yield from check_scheduled_template(controller.spec.template)


def check_new_scheduled_controller(controller: ReplicationController) -> Causes:
    """Check the rules that apply only to new ReplicationControllers; yield the errors."""
    yield from _check_controller_selector(controller)
    yield from check_new_template(controller.spec.template)


def _check_controller_selector(controller: ReplicationController) -> Causes:
    """Yield the errors of the selector, which must match the template's labels.

    By default, the selector equals these labels. The function also yields an error for a missing
    template, and the errors of the template's restartPolicy and activeDeadlineSeconds.
    """
    spec = controller.spec
    if not spec.template:
        if not spec.selector:
            yield required("spec.selector")
        yield required(_TEMPLATE)
        return
    if spec.selector:
        yield from _check_matches(map_selector(spec.selector), spec.template)
    elif not _template_labels(spec.template):
        yield required("spec.selector")
    yield from _check_runs_for_ever(spec.template, "ReplicationController")


def check_runnable_template(template: Json) -> Causes:
    """Yield the errors in those fields of a template that only kubelets read."""
    pod = template_view(_TEMPLATE, template)
    if isinstance(pod, Pod):
        yield from check_runnable_spec(f"{_TEMPLATE}.spec", pod.spec)


def check_scheduled_template(template: Json) -> Causes:
    """Yield the errors of a pod template, but only of those fields that the scheduler reads."""
    pod = template_view(_TEMPLATE, template)
    if isinstance(pod, Cause):
        yield pod
        return
    yield from check_labels(f"{_TEMPLATE}.labels", pod.metadata.labels)
    yield from check_scheduled_spec(f"{_TEMPLATE}.spec", pod.spec)


def check_new_template(template: Json) -> Causes:
    """Check the rules that apply only to the templates of new workloads; yield the errors."""
    pod = template_view(_TEMPLATE, template)
    if isinstance(pod, Pod):
        yield from check_new_scheduled_spec(f"{_TEMPLATE}.spec", pod.spec)
        yield from check_no_ephemeral_template(_TEMPLATE, template)


def _check_runs_for_ever(template: Json, kind: str) -> Causes:
    """Yield an error if restartPolicy is not Always, or if activeDeadlineSeconds is set."""
    pod = template_view(_TEMPLATE, template)
    if isinstance(pod, Cause):
        return
    if pod.spec.restart_policy != "Always":
        field = f"{_TEMPLATE}.spec.restartPolicy"
        yield not_supported(field, pod.spec.restart_policy, ("Always",))
    if pod.spec.active_deadline_seconds is not None:
        why = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden(f"{_TEMPLATE}.spec.activeDeadlineSeconds", why)


def _check_matches(selector: LabelSelector | None, template: Json) -> Causes:
    """Yield an error if `selector` does not match the labels of `template`.

    If they did not match, the controller would not find the pods that it creates, and would create
    more and more pods.
    """
    labels = _template_labels(template)
    if not selector_matches(selector, labels):
        yield invalid(f"{_TEMPLATE}.metadata.labels", labels or None, MISMATCH)


def _template_labels(template: Json) -> dict[str, str]:
    pod = template_view(_TEMPLATE, template)
    return pod.metadata.labels if isinstance(pod, Pod) else {}


def check_template(obj: Json) -> Causes:
    """Yield the errors of the pod template of a workload of any kind."""
    template = obj["spec"].get("template")
    if template is not None:
        yield from check_pod_template(_TEMPLATE, template)


def _check_shares(field: str, rolling: Json) -> Causes:
    for key in _SHARES:
        if rolling.get(key) is not None:
            yield from check_share(f"{field}.{key}", rolling[key])


def check_deployment(obj: Json, view: Deployment) -> Causes:
    """Yield the errors of a Deployment."""
    spec = obj["spec"]
    yield from non_negative("spec.replicas", view.spec.replicas)
    yield from _check_selected_template(obj, view)
    yield from _check_deployment_strategy(spec.get("strategy") or {})
    names = ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    yield from check_fields("spec", "apps.v1.DeploymentSpec", spec, *names)
    yield from _check_progress_deadline(view)


def _check_progress_deadline(deployment: Deployment) -> Causes:
    """Yield an error if progressDeadlineSeconds is not greater than minReadySeconds."""
    deadline_s = deployment.spec.progress_deadline_seconds
    if deadline_s <= deployment.spec.min_ready_seconds:
        where = "spec.progressDeadlineSeconds"
        yield invalid(where, deadline_s, "must be greater than minReadySeconds")


def _check_deployment_strategy(strategy: Json) -> Causes:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "Recreate":
            if rolling is not None:
                why = "may not be specified when strategy `type` is 'Recreate'"
                yield forbidden("spec.strategy.rollingUpdate", why)
        case "RollingUpdate":
            field = "spec.strategy.rollingUpdate"
            yield from _check_shares(field, rolling or {})
            unavailable, surge = ((rolling or {}).get(key) for key in _SHARES)
            where = f"{field}.maxUnavailable"
            if is_nothing(unavailable) and is_nothing(surge):
                yield invalid(where, unavailable, "may not be 0 when `maxSurge` is 0")
            if unavailable is not None:
                yield from check_not_beyond_all(where, unavailable)
        case other:
            shown = {"Type": other or "", "RollingUpdate": rolling}
            yield not_supported("spec.strategy", shown, _STRATEGIES)


def _check_selected_template(obj: Json, view: Replicated) -> Causes:
    yield from check_label_selector("spec.selector", view.spec.selector)
    yield from _check_selector(view)
    yield from check_template(obj)
    yield from _check_runs_for_ever(view.spec.template, _template_owner_kind(view))


def check_replica_set(obj: Json, view: ReplicaSet) -> Causes:
    """Yield the errors of a ReplicaSet."""
    yield from non_negative("spec.replicas", view.spec.replicas)
    yield from check_fields("spec", "apps.v1.ReplicaSetSpec", obj["spec"], "minReadySeconds")
    yield from _check_selected_template(obj, view)


def check_replication_controller(obj: Json, view: ReplicationController) -> Causes:
    """Yield the errors of a ReplicationController."""
    kind_spec = "core.v1.ReplicationControllerSpec"
    yield from check_fields("spec", kind_spec, obj["spec"], "minReadySeconds")
    yield from check_labels("spec.selector", view.spec.selector)
    yield from non_negative("spec.replicas", view.spec.replicas)
    yield from _check_controller_selector(view)
    yield from check_template(obj)


def check_stateful_set(obj: Json, view: StatefulSet) -> Causes:
    """Yield the errors of a StatefulSet."""
    spec = obj["spec"]
    order = spec.get("podManagementPolicy", "")
    if order not in _POD_MANAGEMENT:
        why = "must be 'OrderedReady' or 'Parallel'" if order else ""
        where = "spec.podManagementPolicy"
        yield invalid(where, order, why) if order else required(where)
    yield from _check_stateful_set_strategy(spec.get("updateStrategy") or {})
    where = "spec.persistentVolumeClaimRetentionPolicy"
    policy = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    retention = "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy"
    yield from check_fields(where, retention, policy, "whenDeleted", "whenScaled")
    yield from non_negative("spec.replicas", view.spec.replicas)
    yield from check_fields("spec", "apps.v1.StatefulSetSpec", spec, "minReadySeconds")
    ordinals = spec.get("ordinals") or {}
    yield from check_fields("spec.ordinals", "apps.v1.StatefulSetOrdinals", ordinals, "start")
    yield from check_label_selector("spec.selector", view.spec.selector)
    yield from _check_selector(view)
    # Upstream checks the template's labels here, and again when it checks the template.
    labels = spec["template"]["metadata"].get("labels") or {}
    yield from check_labels("spec.template.labels", labels)
    yield from check_claimed_template(spec)
    yield from _check_runs_for_ever(view.spec.template, "StatefulSet")


def _check_stateful_set_strategy(update: Json) -> Causes:
    rolling = update.get("rollingUpdate")
    match update.get("type"):
        case "RollingUpdate":
            yield from _check_partition("spec.updateStrategy.rollingUpdate", rolling or {})
        case "OnDelete":
            if rolling is not None:
                why = "only allowed for updateStrategy 'RollingUpdate'"
                shown = {
                    "Partition": rolling.get("partition", 0),
                    "MaxUnavailable": rolling.get("maxUnavailable"),
                }
                yield invalid("spec.updateStrategy.rollingUpdate", shown, why)
        case other:
            shown = {"Type": other or "", "RollingUpdate": rolling}
            yield invalid("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'")


def _check_partition(field: str, rolling: Json) -> Causes:
    """Yield the errors of partition and maxUnavailable of a StatefulSet's rolling update."""
    strategy = "apps.v1.RollingUpdateStatefulSetStrategy"
    yield from check_fields(field, strategy, rolling, "partition")
    unavailable = rolling.get("maxUnavailable")
    if unavailable is None:
        return
    where = f"{field}.maxUnavailable"
    yield from check_share(where, unavailable)
    if is_nothing(unavailable):
        yield invalid(where, unavailable, "cannot be 0")
    yield from check_not_beyond_all(where, unavailable)


def check_claimed_template(spec: Json) -> Causes:
    """Yield the errors of the pod template of a StatefulSet with this `spec`.

    For each of the volumeClaimTemplates, a volume is added to the pod template before the check,
    because containers may mount these volumes.
    """
    template = spec["template"].get("spec") or {}
    templates = spec.get("volumeClaimTemplates") or ()
    claims = [(one.get("metadata") or {}).get("name") for one in templates]
    claimed: list[Json] = [{"name": name, "emptyDir": {}} for name in claims]
    names = [volume.get("name") for volume in template.get("volumes") or ()]
    more = [volume for volume in claimed if volume["name"] not in names]
    complete = {**template, "volumes": [*(template.get("volumes") or []), *more]}
    yield from check_pod_template("spec.template", {**spec["template"], "spec": complete})


def check_stateful_set_update(old: Json, new: Json) -> Causes:
    """Yield an error if an update changes an immutable field of a StatefulSet's spec."""
    before, after = (
        {key: value for key, value in obj["spec"].items() if key not in _CHANGEABLE}
        for obj in (old, new)
    )
    if before != after:
        yield forbidden("spec", ONLY_THESE)


def check_daemon_set(obj: Json, view: DaemonSet) -> Causes:
    """Yield the errors of a DaemonSet."""
    spec = obj["spec"]
    yield from _check_selected_template(obj, view)
    yield from check_fields("spec", "apps.v1.DaemonSetSpec", spec, "minReadySeconds")
    yield from _check_daemon_set_strategy(spec.get("updateStrategy") or {})
    yield from check_fields("spec", "apps.v1.DaemonSetSpec", spec, "revisionHistoryLimit")


def _check_daemon_set_strategy(update: Json) -> Causes:
    match update.get("type"):
        case "RollingUpdate":
            rolling = update.get("rollingUpdate") or {}
            yield from _check_replacement("spec.updateStrategy.rollingUpdate", rolling)
        case "OnDelete":
            pass
        case other:
            shown = {"Type": other or "", "RollingUpdate": update.get("rollingUpdate")}
            yield not_supported("spec.updateStrategy", shown, _UPDATE_STRATEGIES)


def _check_replacement(field: str, rolling: Json) -> Causes:
    """Yield the errors of maxUnavailable and maxSurge. Exactly one of them must be above zero."""
    yield from _check_shares(field, rolling)
    for key in _SHARES:
        if rolling.get(key) is not None:
            yield from check_not_beyond_all(f"{field}.{key}", rolling[key])
    unavailable, surge = (rolling.get(key) for key in _SHARES)
    if is_nothing(unavailable) and is_nothing(surge):
        yield required(f"{field}.maxUnavailable", "cannot be 0 when maxSurge is 0")
    elif not is_nothing(unavailable) and not is_nothing(surge):
        why = "may not be set when maxUnavailable is non-zero"
        yield invalid(f"{field}.maxSurge", surge, why)


def check_revision(obj: Json) -> Causes:
    """Yield the errors of a ControllerRevision."""
    if obj.get("data") is None:
        yield required("data", "data is mandatory")
    yield from check_fields("", "apps.v1.ControllerRevision", obj, "revision")


def check_revision_update(old: Json, new: Json) -> Causes:
    """Yield an error if an update changes the data of a ControllerRevision."""
    before, after = old.get("data"), new.get("data")
    if before == after and differs_as_text(before, after):
        yield invalid("data", after, IMMUTABLE)
    yield from check_unchanged("data", before, after)


def check_new_pod_template(obj: Json) -> Causes:
    """Yield the errors of a new PodTemplate."""
    yield from check_pod_template("template", obj["template"])
