"""Names, labels and the rest of metadata.

upstream: apimachinery/pkg/api/validation/{generic,objectmeta}.go, and each kind's name rule
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.label import label_key_problems, label_value_problems, subdomain_problems
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
from fairlead.apiserver.validation.field import Causes, invalid, required

NameRule = Callable[[str], tuple[str, ...]]

DNS_LABEL_MAX: Final = 63
SUBDOMAIN_MAX: Final = 253
_DNS_LABEL_FORM: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL: Final = re.compile(_DNS_LABEL_FORM)
_DNS_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
    f"regex used for validation is '{_DNS_LABEL_FORM}')"
)
_DNS_1035_FORM: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_DNS_1035: Final = re.compile(_DNS_1035_FORM)
_DNS_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    f"regex used for validation is '{_DNS_1035_FORM}')"
)


def dns_label_problems(name: str) -> tuple[str, ...]:
    """Why `name` is no DNS label (RFC 1123)."""
    problems = _too_long(name, DNS_LABEL_MAX)
    if _DNS_LABEL.fullmatch(name):
        return problems
    is_subdomain = all(map(_DNS_LABEL.fullmatch, name.split(".")))
    return (*problems, "must not contain dots" if is_subdomain else _DNS_LABEL_RULE)


def dns_subdomain_problems(name: str) -> tuple[str, ...]:
    """Why `name` is no DNS subdomain; a length is said to be in characters here."""
    problems = subdomain_problems(name)
    if not problems:
        return ()
    shape = tuple(problem for problem in problems if "no more than" not in problem)
    return _too_long(name, SUBDOMAIN_MAX) + shape


def dns_1035_problems(name: str) -> tuple[str, ...]:
    """Why `name` is no DNS label of the older kind (RFC 1035), which begins with a letter."""
    problems = _too_long(name, DNS_LABEL_MAX)
    return problems if _DNS_1035.fullmatch(name) else (*problems, _DNS_1035_RULE)


def path_segment_problems(name: str) -> tuple[str, ...]:
    """Why `name` cannot stand in a URL; all that many kinds ask of a name."""
    # upstream: apimachinery/pkg/api/validation/path/name.go:IsValidPathSegmentName
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{mark}'" for mark in "/%" if mark in name)


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
    """What the kind asks of a name."""
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
    """What nobody could tell the owner of an object by; all that is asked of a stored one."""
    for owner in meta.owner_references:
        if not owner.uid:
            yield invalid("metadata.ownerReferences.uid", "", "must not be empty")


def check_labels(field: str, labels: Mapping[str, str]) -> Causes:
    """Keys and values; upstream names the map, not the key."""
    for key, value in labels.items():
        for problem in label_key_problems(key):
            yield invalid(field, key, problem)
        for problem in label_value_problems(value):
            yield invalid(field, value, problem)


def check_timestamp(field: str, text: str) -> Causes:
    """An instant, if there is one."""
    if text:
        try:
            parse_timestamp(text)
        except ValueError as cause:
            yield invalid(field, text, str(cause))


def _too_long(text: str, bytes_max: int) -> tuple[str, ...]:
    if len(text.encode()) <= bytes_max:
        return ()
    return (f"must be no more than {bytes_max} characters",)
