"""ObjectMeta: names, labels, annotations, owners, finalizers.

upstream: apimachinery/pkg/api/validation/{generic,objectmeta}.go, and each kind's name rule
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.objects import ObjectMeta
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
    Kind,
)
from fairlead.apiserver.validation.meta.field import Causes, invalid, non_negative, required
from fairlead.apiserver.validation.meta.format import (
    check_unchanged,
    dns_label_problems,
    dns_subdomain_problems,
    path_segment_problems,
    too_long,
)

NameRule = Callable[[str], tuple[str, ...]]

# upstream: NameIsDNSSubdomain in each kind's validation
_NAMED_LIKE_HOSTS: Final = (
    "configmaps",
    "secrets",
    "serviceaccounts",
    "limitranges",
    "resourcequotas",
    "persistentvolumeclaims",
    "persistentvolumes",
    "podtemplates",
    "endpoints",
    "controllerrevisions.apps",
    "horizontalpodautoscalers.autoscaling",
    "leases.coordination.k8s.io",
    "endpointslices.discovery.k8s.io",
    "ingresses.networking.k8s.io",
    "ingressclasses.networking.k8s.io",
    "networkpolicies.networking.k8s.io",
    "runtimeclasses.node.k8s.io",
    "storageclasses.storage.k8s.io",
    "servicecidrs.networking.k8s.io",
    "csidrivers.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "csistoragecapacities.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "volumeattributesclasses.storage.k8s.io",
    "resourceclaims.resource.k8s.io",
    "resourceclaimtemplates.resource.k8s.io",
    "resourceslices.resource.k8s.io",
    "deviceclasses.resource.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
)
_NAME_RULES: Final[Mapping[str, NameRule]] = {
    **dict.fromkeys(_NAMED_LIKE_HOSTS, dns_subdomain_problems),
    NAMESPACE.resource: dns_label_problems,
    STATEFUL_SET.resource: dns_label_problems,
    **{
        kind.resource: dns_subdomain_problems
        for kind in (
            POD,
            NODE,
            PRIORITY_CLASS,
            DEPLOYMENT,
            REPLICA_SET,
            DAEMON_SET,
            REPLICATION_CONTROLLER,
            JOB,
            CRON_JOB,
        )
    },
    SERVICE.resource: dns_label_problems,
}


def name_rule(kind: Kind) -> NameRule:
    """The name rule of a kind."""
    # upstream: apiextensions-apiserver/pkg/registry/customresource/strategy.go has one for all
    otherwise = dns_subdomain_problems if kind.is_custom else path_segment_problems
    return _NAME_RULES.get(kind.resource, otherwise)


def check_metadata(kind: Kind, meta: ObjectMeta) -> Causes:
    """Name, namespace, labels and timestamps of an object."""
    rule = name_rule(kind)
    if not meta.name:
        yield required("metadata.name", "name or generateName is required")
    else:
        for problem in rule(meta.name):
            yield invalid("metadata.name", meta.name, problem)
    if meta.namespace:
        for problem in dns_label_problems(meta.namespace):
            yield invalid("metadata.namespace", meta.namespace, problem)
    yield from check_labels("metadata.labels", meta.labels)
    yield from check_timestamp("metadata.creationTimestamp", meta.creation_timestamp)
    yield from check_timestamp("metadata.deletionTimestamp", meta.deletion_timestamp)


def check_owner_ids(meta: ObjectMeta) -> Causes:
    """Owner references of stored objects have uids."""
    for owner in meta.owner_references:
        if not owner.uid:
            yield invalid("metadata.ownerReferences.uid", "", "must not be empty")


def check_labels(field: str, labels: Mapping[str, str]) -> Causes:
    """Label keys and values; `field` is the path of the map."""
    for key, value in labels.items():
        for problem in label_key_problems(key):
            yield invalid(field, key, problem)
        for problem in label_value_problems(value):
            yield invalid(field, value, problem)


def check_timestamp(field: str, text: str) -> Causes:
    """A timestamp, if there is one."""
    if text:
        try:
            parse_timestamp(text)
        except ValueError as cause:
            yield invalid(field, text, str(cause))


_UNQUALIFIED: Final = "name is neither a standard finalizer name nor is it fully qualified"
STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
ANNOTATIONS_BYTES_MAX: Final = 256 * 1024
# Groups and kinds that accept unqualified finalizers.
_ANY_FINALIZER: Final = (
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io",
    "coordination.k8s.io", "events.k8s.io", "events", "poddisruptionbudgets.policy",
)  # fmt: skip
# Kinds whose updated metadata is not validated as that of a new object.
# upstream: ValidateUpdate of pkg/registry/*/*/strategy.go
_NOT_AS_NEW: Final = (
    "resourcequotas", "endpoints", "podtemplates", "events", "events.events.k8s.io",
    "deployments.apps", "statefulsets.apps", "cronjobs.batch", "poddisruptionbudgets.policy",
    "horizontalpodautoscalers.autoscaling", "leases.coordination.k8s.io",
    "priorityclasses.scheduling.k8s.io", "customresourcedefinitions.apiextensions.k8s.io",
    "deviceclasses.resource.k8s.io", "resourceclaims.resource.k8s.io",
    "resourceclaimtemplates.resource.k8s.io", "resourceslices.resource.k8s.io",
)  # fmt: skip
# Kinds whose updates check metadata only as that of a new object.
_AS_NEW_ONLY: Final = (
    "persistentvolumes", "limitranges", "endpointslices.discovery.k8s.io",
    "csinodes.storage.k8s.io", "volumeattachments.storage.k8s.io", "poddisruptionbudgets.policy",
)  # fmt: skip
_GROUPS_AS_NEW_ONLY: Final = ("admissionregistration.k8s.io", "flowcontrol.apiserver.k8s.io")
_AS_NEW_TWICE: Final = ("csinodes.storage.k8s.io", "volumeattachments.storage.k8s.io")
_IMMUTABLE_KEYS: Final = ("name", "namespace", "uid")  # the server sets the others itself


def check_generate_name(kind: Kind, meta: Json) -> Causes:
    """generateName."""
    beginning = meta.get("generateName", "")
    if beginning:
        # upstream: apimachinery/pkg/api/validation/generic.go:maskTrailingDash, which takes two
        is_masked = len(beginning) > 1 and beginning.endswith("-")
        masked = f"{beginning[:-2]}a" if is_masked else beginning
        for problem in name_rule(kind)(masked):
            yield invalid("metadata.generateName", beginning, problem)


def check_generation(kind: Kind, meta: Json) -> Causes:
    """The generation, for kinds whose generation clients may set."""
    if not kind.has_generation:  # the server counts those of the others itself
        yield from non_negative("metadata.generation", meta.get("generation") or 0)


def check_rest(kind: Kind, meta: Json) -> Causes:
    """Annotations, owners and finalizers of a new object."""
    finalizers = meta.get("finalizers") or []
    yield from _check_details(meta)
    yield from _check_finalizers(finalizers)
    if kind.is_custom or kind.resource in _ANY_FINALIZER or kind.group in _ANY_FINALIZER:
        return
    # upstream: pkg/apis/core/validation/validation.go:ValidateObjectMeta
    for index, name in enumerate(finalizers):
        if "/" not in name and name not in STANDARD_FINALIZERS:
            yield invalid(f"metadata.finalizers[{index}]", name, _UNQUALIFIED)


def _check_details(meta: Json) -> Causes:
    yield from check_annotation_keys("metadata.annotations", meta.get("annotations") or {})
    yield from _check_owners(meta.get("ownerReferences") or [])


def _check_finalizers(finalizers: list[str]) -> Causes:
    # upstream: apimachinery/pkg/api/validation/objectmeta.go:ValidateFinalizers
    for name in finalizers:
        for problem in label_key_problems(name):
            yield invalid("metadata.finalizers", name, problem)
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid("metadata.finalizers", finalizers, why)


def check_finalizer_names(field: str, names: list[str] | None) -> Causes:
    """spec.finalizers of a Namespace; upstream's causes do not say which one is wrong."""
    # upstream: pkg/apis/core/validation/validation.go:validateFinalizerName
    for name in names or ():
        for problem in label_key_problems(name):
            yield invalid(field, name, problem)
        if "/" not in name and name not in STANDARD_FINALIZERS:
            yield invalid(field, name, _UNQUALIFIED)


def check_annotation_keys(field: str, annotations: Json) -> Causes:
    """Annotation keys and the total size; `field` is the path of the map."""
    size = 0
    for key, value in annotations.items():
        size += len(key.encode()) + len(value.encode())
        for problem in label_key_problems(key.lower()):
            yield invalid(field, key, problem)
    if size > ANNOTATIONS_BYTES_MAX:
        yield too_long(field, ANNOTATIONS_BYTES_MAX)


def _check_owners(owners: list[Json]) -> Causes:
    # upstream: apimachinery/pkg/api/validation/objectmeta.go:ValidateOwnerReferences
    field = "metadata.ownerReferences"
    controller = ""
    for owner in owners:
        yield from _check_owner(field, owner)
        if not owner.get("controller"):
            continue
        called = f"{owner.get('kind')}/{owner.get('name')}"
        if controller:
            why = f'Found "true" in references for {controller} and {called}'
            yield invalid(
                field, owners, f"Only one reference can have Controller set to true. {why}"
            )
        controller = controller or called


def _check_owner(field: str, owner: Json) -> Causes:
    stated = owner.get("apiVersion", "")
    group, _, version = stated.rpartition("/")
    if not version or "/" in group:
        yield invalid(f"{field}.apiVersion", stated, "version must not be empty")
    for name in ("kind", "name", "uid"):
        if not owner.get(name):
            yield invalid(f"{field}.{name}", "", "must not be empty")
    if (group, version, owner.get("kind")) == ("", "v1", "Event"):
        yield invalid(field, owner, "/v1, Kind=Event is disallowed from being an owner")


def times_as_new(kind: Kind) -> int:
    """How often upstream validates the metadata of an updated object as new."""
    if kind.is_custom or kind.resource in _NOT_AS_NEW:
        return 0
    return 2 if kind.resource in _AS_NEW_TWICE else 1


def check_metadata_update(kind: Kind, old: Json, new: Json) -> Causes:
    """Updates of metadata: name, namespace and uid never change; upstream checks most twice."""
    # upstream: apiserver/pkg/registry/rest/update.go:validateCommonFields, and the kind's own
    before, after = old["metadata"], new["metadata"]
    yield from check_labels("metadata.labels", after.get("labels") or {})
    yield from _check_details(after)
    yield from _check_finalizers(after.get("finalizers") or [])
    once = kind.resource in _AS_NEW_ONLY or kind.group in _GROUPS_AS_NEW_ONLY
    for _ in range(1 if once else 2):
        for name in _IMMUTABLE_KEYS:
            if name in after:
                yield from check_unchanged(f"metadata.{name}", before.get(name), after[name])
        yield from check_labels("metadata.labels", after.get("labels") or {})
        yield from _check_details(after)
