"""The strategies of the API group `apps`.

upstream: pkg/registry/apps/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.strategy import (
    PreparationContext,
    ResourceStrategy,
    is_respecified,
)
from fairlead.apiserver.registry.warning.pod import claim_warnings
from fairlead.apiserver.registry.warning.workload import naming_workload_warnings, workload_warnings
from fairlead.apiserver.validation import status
from fairlead.apiserver.validation.apps import workload
from fairlead.apiserver.validation.meta.format import dns_label_problems, dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check

_TEMPLATE: Final = "spec.template"
# Annotation that counts template changes. upstream: pkg/apis/apps/v1/conversion.go
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def _new_daemon_set(daemon_set: Json, _: PreparationContext) -> Json:
    return _with_template_generation(daemon_set, 1)


def _changed_daemon_set(old: Json, new: Json, _: PreparationContext) -> Json:
    annotations = old["metadata"].get("annotations", {})
    before = int(annotations.get(TEMPLATE_GENERATION, "0") or "0")
    changed = old["spec"].get("template") != new["spec"].get("template")
    return _with_template_generation(new, before + changed)


def _with_template_generation(daemon_set: Json, generation: int) -> Json:
    meta = daemon_set["metadata"]
    annotations = {**meta.get("annotations", {}), TEMPLATE_GENERATION: str(generation)}
    return {**daemon_set, "metadata": {**meta, "annotations": annotations}}


def is_deployment_respecified(old: Json, new: Json) -> bool:
    """Return whether an update changes a Deployment's annotations or spec.

    Such an update increments the Deployment's generation.
    """
    before, after = (obj["metadata"].get("annotations", {}) for obj in (old, new))
    return before != after or is_respecified(old, new)


def _stateful_set_warnings(old: Json | None, new: Json) -> Iterator[str]:
    yield from naming_workload_warnings(_TEMPLATE, old, new)
    # upstream: pkg/registry/apps/statefulset/strategy.go:WarningsOnCreate, WarningsOnUpdate, whose
    # messages use two names for the same field
    spec = new["spec"]
    end = "" if old is None else ".Spec"
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        field = f"spec.volumeClaimTemplates[{index}]{end}"
        yield from claim_warnings(field, claim.get("spec") or {})
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        why = "a negative value retains all historical revisions; a value >= 0 is recommended"
        yield f"spec.revisionHistoryLimit: {why}"


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "controllerrevisions.apps": ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            new=json_check(workload.check_revision),
            update=workload.check_revision_update,
        )
    ),
    "daemonsets.apps": ResourceStrategy(
        prepare_for_create=_new_daemon_set,
        prepare_for_update=_changed_daemon_set,
        rules=KindRules(
            name=dns_subdomain_problems,
            new=workload.check_daemon_set,
            reports_changed_twice=True,
            subresources={"status": status.check_daemon_set_status},
        ),
        warnings=partial(workload_warnings, _TEMPLATE),
    ),
    "deployments.apps": ResourceStrategy(
        increments_generation=is_deployment_respecified,
        metadata_with_status=("annotations", "finalizers", "managedFields", "ownerReferences"),
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_validations=0,
            new=workload.check_deployment,
            subresources={"status": status.check_deployment_status},
        ),
        warnings=partial(naming_workload_warnings, _TEMPLATE),
        reset_fields={"status": (("metadata", "labels"),)},
    ),
    "replicasets.apps": ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            new=workload.check_replica_set,
            reports_changed_twice=True,
            subresources={"status": status.check_replica_set_status},
        ),
        warnings=partial(naming_workload_warnings, _TEMPLATE),
    ),
    "statefulsets.apps": ResourceStrategy(
        rules=KindRules(
            name=dns_label_problems,
            metadata_validations=0,
            new=workload.check_stateful_set,
            update=workload.check_stateful_set_update,
            subresources={"status": status.check_stateful_set_status},
        ),
        warnings=_stateful_set_warnings,
    ),
}
