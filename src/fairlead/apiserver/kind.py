"""Kind: the facts that the API server needs about a kind of objects.

`kind_table` contains the built-in kinds. For all other kinds, `kind_of` guesses the facts. A server
looks up kinds in `registry.served_kinds`, which also contains the custom resources that the server
serves.

upstream: apimachinery/pkg/apis/meta/v1/types.go:APIResource
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Protocol

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver import kind_table
from fairlead.apiserver.schema.field_location import Notes
from fairlead.apiserver.schema.model import Schema
from fairlead.apiserver.status_cause import Cause

_READ_WRITE: Final = ("get", "patch", "update")
_POSTED: Final = ("create",)
_STREAM: Final = ("create", "get")
_PROXY: Final = ("create", "delete", "get", "patch", "update")


class Subresource(Struct, frozen=True):
    """A subresource; `kind` is the kind of its request bodies.

    `group` and `version` are those of `kind`; "" means the group and version of the object.
    """

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


# {} is replaced by the object's kind.
_SUBRESOURCES: Final = (
    Subresource("approval", "{}", _READ_WRITE),
    Subresource("attach", "{}AttachOptions", _STREAM),
    Subresource("binding", "Binding", _POSTED),
    Subresource("ephemeralcontainers", "{}", _READ_WRITE),
    Subresource("eviction", "Eviction", _POSTED, "policy", "v1"),
    Subresource("exec", "{}ExecOptions", _STREAM),
    Subresource("finalize", "{}", ("update",)),
    Subresource("log", "{}", ("get",)),
    Subresource("portforward", "{}PortForwardOptions", _STREAM),
    Subresource("proxy", "{}ProxyOptions", _PROXY),
    Subresource("resize", "{}", _READ_WRITE),
    Subresource("scale", "Scale", _READ_WRITE, "autoscaling", "v1"),
    Subresource("status", "{}", _READ_WRITE),
    Subresource("token", "TokenRequest", _POSTED, "authentication.k8s.io", "v1"),
)
_SUBRESOURCES_BY_NAME: Final = {row.name: row for row in _SUBRESOURCES}


def subresource(name: str, kind: str) -> Subresource:
    """Return the subresource with the name `name` of the kind with the name `kind`.

    Raises KeyError for an unknown subresource.
    """
    row = _SUBRESOURCES_BY_NAME[name]
    return Subresource(name, row.kind.format(kind), row.verbs, row.group, row.version)


VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
WRITE_VERBS: Final = ("create", "delete", "deletecollection", "patch", "update")
POSTED_VERBS: Final = ("create",)
MEASURED_VERBS: Final = ("get", "list")
# upstream: pkg/kubeapiserver/default_storage_factory_builder.go:NewStorageFactoryConfig
_STORED_VERSIONS: Final = {"autoscaling/v1": "autoscaling/v2", "events.k8s.io/v1": "v1"}
_FEWER_VERBS: Final = {
    "Namespace": tuple(verb for verb in VERBS if verb != "deletecollection"),
    "ComponentStatus": ("get", "list"),  # computed on each request, not stored
}


class DefinedType(Protocol):
    """The parts of a CustomResourceDefinition that describe one version of a custom resource.

    The implementation is `apiextensions.custom_type.CustomType`, in a higher layer.
    """

    @property
    def raw(self) -> Json:
        """The OpenAPI schema as the definition contains it."""
        ...

    @property
    def fields(self) -> Schema:
        """The schema for managedFields and server-side apply."""
        ...

    @property
    def printer(self) -> object:
        """The `printers.column.Printer` for Tables of this version."""
        ...

    @property
    def scale(self) -> object | None:
        """The `apiextensions.custom_type.ScalePaths`; None without a scale subresource."""
        ...

    @property
    def selectable(self) -> tuple[str, ...]:
        """The paths of the fields that field selectors may use."""
        ...

    @property
    def has_status(self) -> bool:
        """True if this version has the subresource `status`."""
        ...

    @property
    def deprecation(self) -> str:
        """The warning for requests to this version; "" if it is not deprecated."""
        ...

    def pruned_and_defaulted(self, obj: Json, notes: Notes) -> Json:
        """Return `obj` pruned and with its defaults; `notes` receives the unknown fields.

        Raises TypeMismatchError for malformed metadata. Raises ApiError 413 if the defaults are too
        large.
        """
        ...

    def pruned(self, obj: Json) -> Json:
        """Return `obj` without the fields that this version's schema does not declare."""
        ...

    def causes(self, obj: Json, old: Json | None) -> Iterator[Cause]:
        """Yield the validation errors of `obj`; `old` is the object that it replaces, or None."""
        ...


@dataclass(frozen=True)
class Kind:
    """A kind of objects."""

    group: str  # "" for the core group
    version: str
    kind: str
    plural: str
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    has_generation: bool = False
    has_status: bool = False
    verbs: tuple[str, ...] = VERBS
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    is_custom: bool = False
    singular_name: str | None = None  # None: `kind` in lower case
    list_kind_name: str = ""
    stored_version: str = ""  # "": objects are stored in `version`
    feature_gate: str = ""  # if not "", the kind is served only if this gate is enabled
    # The type of a custom resource; None if the kind is built-in or its definition is unknown.
    custom: DefinedType | None = None
    # The types of all versions of the custom resource, each with its apiVersion.
    all_types: tuple[tuple[str, DefinedType], ...] = field(default=(), compare=False, repr=False)
    # `spec.conversion.webhook` of the CustomResourceDefinition; None if the conversion strategy is
    # not Webhook.
    conversion_webhook: Json | None = field(default=None, repr=False)

    def __hash__(self) -> int:
        """Return the hash of `resource` only.

        Lookups are frequent, so the hash must be fast. Few kinds have the same `resource`, so
        collisions are rare.
        """
        return self.resource.__hash__()

    @cached_property
    def api_version(self) -> str:
        """The apiVersion: `group/version`, or `version` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def stored_as(self) -> str:
        """The apiVersion in which objects of this kind are stored."""
        return self.stored_version or self.api_version

    @cached_property
    def as_stored(self) -> Kind:
        """For a custom resource, the kind in the version `stored_as`; else the kind itself."""
        return self.in_version(self.stored_as) if self.is_custom else self

    def in_version(self, api_version: str) -> Kind:
        """Return this kind in the version `api_version`.

        The result is `self` if the kind is built in, or if its CustomResourceDefinition does not
        have this version.
        """
        custom = dict(self.all_types).get(api_version)
        if custom is None or api_version == self.api_version:
            return self
        version = api_version.rpartition("/")[2]
        return replace(self, version=version, custom=custom, has_status=custom.has_status)

    @cached_property
    def stored_group(self) -> str:
        """The API group in `stored_as`; error messages show this group."""
        return self.stored_as.rpartition("/")[0]

    @cached_property
    def resource(self) -> str:
        """The plural with its group (`pods`, `deployments.apps`), for messages and storage keys."""
        return f"{self.plural}.{self.stored_group}" if self.stored_group else self.plural

    @cached_property
    def qualified(self) -> str:
        """The kind with its group (`Pod`, `Deployment.apps`), for errors about invalid objects."""
        return f"{self.kind}.{self.stored_group}" if self.stored_group else self.kind

    @cached_property
    def singular(self) -> str:
        """The singular name, such as `pod`.

        Metrics kinds have no singular name ("").
        """
        return self.kind.lower() if self.singular_name is None else self.singular_name

    @cached_property
    def list_kind(self) -> str:
        """The kind of a list of objects of this kind, such as `PodList` for `Pod`."""
        return self.list_kind_name or f"{self.kind}List"

    def part(self, name: str) -> Subresource | None:
        """Return the subresource called `name`; None if the kind does not have it."""
        return next((sub for sub in self.subresources if sub.name == name), None)


def _names(cell: str) -> tuple[str, ...]:
    return () if cell == "-" else tuple(cell.split(","))


def _row(line: str, verbs: tuple[str, ...]) -> Kind:
    api_version, kind, plural, short_names, traits, categories, subresources = line.split()
    group, _, version = api_version.rpartition("/")
    parts = (*_names(subresources), *(("status",) if "s" in traits else ()))
    return Kind(
        group,
        version,
        kind,
        plural,
        _names(short_names),
        namespaced="n" in traits,
        has_generation="g" in traits,
        has_status="s" in traits,
        verbs=_FEWER_VERBS.get(kind, verbs),
        categories=_names(categories),
        subresources=tuple(subresource(name, kind) for name in parts),
        is_custom="c" in traits,
        stored_version=_STORED_VERSIONS.get(api_version, ""),
    )


def _rows(table: str, verbs: tuple[str, ...] = VERBS) -> Iterator[Kind]:
    return (_row(line, verbs) for line in table.strip().splitlines())


def _gated_rows(table: str) -> Iterator[Kind]:
    for line in table.strip().splitlines():
        gate, _, row = line.partition(" ")
        yield replace(_row(row, VERBS), feature_gate=gate)


KINDS: Final = (
    *_rows(kind_table.STORED),
    *_rows(kind_table.CUSTOM),
    *_gated_rows(kind_table.GATED),
)
POSTED_KINDS: Final = tuple(_rows(kind_table.POSTED, POSTED_VERBS))
# A metrics server publishes no singular names.
NODE_METRICS, POD_METRICS = (
    replace(kind, singular_name="") for kind in _rows(kind_table.MEASURED, MEASURED_VERBS)
)
_BY_TYPE: Final = {(kind.api_version, kind.kind): kind for kind in KINDS}


def _by_name() -> dict[str, Kind]:
    """Return a map from every name of a kind, in lower case, to the kind.

    The names of a kind are its `kind`, `plural` and `short_names`, with and without its group.
    """
    names: dict[str, Kind] = {}
    for kind in KINDS:
        for name in (kind.plural, kind.kind.lower(), *kind.short_names):
            names.setdefault(name, kind)
            names.setdefault(f"{name}.{kind.group}", kind)
    return names


_BY_NAME: Final = _by_name()

POD: Final = _BY_NAME["pod"]
POD_TEMPLATE: Final = _BY_NAME["podtemplate"]
NODE: Final = _BY_NAME["node"]
NAMESPACE: Final = _BY_NAME["namespace"]
SERVICE: Final = _BY_NAME["service"]
REPLICATION_CONTROLLER: Final = _BY_NAME["replicationcontroller"]
DEPLOYMENT: Final = _BY_NAME["deployment"]
REPLICA_SET: Final = _BY_NAME["replicaset"]
STATEFUL_SET: Final = _BY_NAME["statefulset"]
# The built-in kinds with the subresource `scale`.
SCALABLE: Final = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER)
DAEMON_SET: Final = _BY_NAME["daemonset"]
CONTROLLER_REVISION: Final = _BY_NAME["controllerrevision"]
JOB: Final = _BY_NAME["job"]
CRON_JOB: Final = _BY_NAME["cronjob"]
HORIZONTAL_POD_AUTOSCALER: Final = _BY_NAME["horizontalpodautoscaler"]
ENDPOINT_SLICE: Final = _BY_NAME["endpointslice"]
POD_DISRUPTION_BUDGET: Final = _BY_NAME["poddisruptionbudget"]
PRIORITY_CLASS: Final = _BY_NAME["priorityclass"]
MUTATING_WEBHOOK_CONFIGURATION: Final = _BY_NAME["mutatingwebhookconfiguration"]
VALIDATING_WEBHOOK_CONFIGURATION: Final = _BY_NAME["validatingwebhookconfiguration"]
MUTATING_ADMISSION_POLICY: Final = _BY_NAME["mutatingadmissionpolicy"]
MUTATING_ADMISSION_POLICY_BINDING: Final = _BY_NAME["mutatingadmissionpolicybinding"]
VALIDATING_ADMISSION_POLICY: Final = _BY_NAME["validatingadmissionpolicy"]
VALIDATING_ADMISSION_POLICY_BINDING: Final = _BY_NAME["validatingadmissionpolicybinding"]
CUSTOM_RESOURCE_DEFINITION: Final = _BY_NAME["customresourcedefinition"]
SERVICE_ACCOUNT: Final = _BY_NAME["serviceaccount"]
CONFIG_MAP: Final = _BY_NAME["configmap"]
SECRET: Final = _BY_NAME["secret"]
LIMIT_RANGE: Final = _BY_NAME["limitrange"]
RESOURCE_QUOTA: Final = _BY_NAME["resourcequota"]
PERSISTENT_VOLUME: Final = _BY_NAME["persistentvolume"]
PERSISTENT_VOLUME_CLAIM: Final = _BY_NAME["persistentvolumeclaim"]
API_SERVICE: Final = _BY_NAME["apiservice"]
COMPONENT_STATUS: Final = _BY_NAME["componentstatus"]
STORAGE_CLASS: Final = _BY_NAME["storageclass"]
RUNTIME_CLASS: Final = _BY_NAME["runtimeclass"]
INGRESS: Final = _BY_NAME["ingress"]
INGRESS_CLASS: Final = _BY_NAME["ingressclass"]
RESOURCE_CLAIM: Final = _BY_NAME["resourceclaim"]
RESOURCE_CLAIM_TEMPLATE: Final = _BY_NAME["resourceclaimtemplate"]
RESOURCE_SLICE: Final = _BY_NAME["resourceslice"]
DEVICE_CLASS: Final = _BY_NAME["deviceclass"]
DEVICE_TAINT_RULE: Final = _BY_NAME["devicetaintrule"]
POD_GROUP: Final = _BY_NAME["podgroups.scheduling.k8s.io"]
WORKLOAD: Final = _BY_NAME["workloads.scheduling.k8s.io"]
CSI_NODE: Final = _BY_NAME["csinode"]
CSI_STORAGE_CAPACITY: Final = _BY_NAME["csistoragecapacity"]
VOLUME_ATTACHMENT: Final = _BY_NAME["volumeattachment"]
VOLUME_ATTRIBUTES_CLASS: Final = _BY_NAME["volumeattributesclass"]
LEASE: Final = _BY_NAME["lease"]
ROLE: Final = _BY_NAME["role"]
ROLE_BINDING: Final = _BY_NAME["rolebinding"]
CLUSTER_ROLE: Final = _BY_NAME["clusterrole"]
CLUSTER_ROLE_BINDING: Final = _BY_NAME["clusterrolebinding"]


def find_kind(name: str) -> Kind | None:
    """Return the kind called `name`; None if there is none.

    `name` is a kind, plural or short name in upper or lower case, with or without its group.
    """
    return _BY_NAME.get(name.lower())


def reference_kind(kind: Kind) -> str:
    """Return how an ObjectRef names `kind`.

    The result is the name of the kind if `find_kind` finds `kind` by its name alone. Otherwise the
    group is appended (`Job.batch.volcano.sh`), because kinds of two groups may have the same name.
    """
    known = find_kind(kind.kind)
    is_found = known is not None and known.resource == kind.resource
    return kind.kind if is_found else kind.qualified


def kind_of(obj: Mapping[str, Any]) -> Kind:
    """Return the kind of a JSON object.

    If `kind_table` does not contain the kind, it is guessed from the object.
    """
    api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
    known = _BY_TYPE.get((api_version, kind))
    if known is not None:
        return known
    group, _, version = api_version.rpartition("/")
    namespaced = bool(obj.get("metadata", {}).get("namespace"))
    short = kind_table.CUSTOM_SHORT_NAMES.get(f"{kind}.{group}", ())
    return Kind(
        group, version, kind, _plural(kind), short, namespaced=namespaced, has_generation=True
    )


def _plural(kind: str) -> str:
    """Return the usual plural of `kind`."""
    # upstream: apimachinery/pkg/api/meta/restmapper.go:UnsafeGuessKindToResource
    singular = kind.lower()
    if singular.endswith("s"):
        return f"{singular}es"
    return f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"


_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY: Final = {None: 0, "beta": 1, "alpha": 2}


def version_order(version: str) -> tuple[int, int, int, str]:
    """Return a sort key that orders v2, v1, v1beta2, v1beta1, v1alpha1, then all other versions."""
    # upstream: apimachinery/pkg/version/helpers.go:CompareKubeAwareVersionStrings
    match = _VERSION.fullmatch(version)
    if match is None:
        return len(_STABILITY), 0, 0, version
    major, stability, minor = match.groups()
    return _STABILITY[stability], -int(major), -int(minor or 0), ""
