"""The form of an object that the store accepts: without nulls, managedFields and old versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from fairlead.api.codec import VIEWS, display_name
from fairlead.api.json import Json
from fairlead.apiserver.kind import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    HORIZONTAL_POD_AUTOSCALER,
    KINDS,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
    Kind,
    find_kind,
    kind_of,
)
from fairlead.whatif.input.error import InputError, one_line

_API_VERSION: Final = re.compile(r"(?:[^/\s]*/)?[^/\s]+")
_INTEGER_BOUND: Final = 2**63
_FORMER_API_VERSIONS: Final = {  # {former version: the version in which its objects are read}
    "apps/v1beta1": "apps/v1",
    "apps/v1beta2": "apps/v1",
    "extensions/v1beta1": "apps/v1",
    "batch/v1beta1": "batch/v1",
    "node.k8s.io/v1beta1": "node.k8s.io/v1",
    "policy/v1beta1": "policy/v1",
    "scheduling.k8s.io/v1alpha1": "scheduling.k8s.io/v1",
    "scheduling.k8s.io/v1beta1": "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1": "storage.k8s.io/v1",
    "resource.k8s.io/v1alpha3": "resource.k8s.io/v1beta2",
}
# {(group, kind): the API version in which Fairlead reads objects of the kind}
_VERSIONS: Final = {(version.rpartition("/")[0], kind): version for version, kind in VIEWS}
_AUTOSCALING_V1: Final = "autoscaling/v1"
_AUTOSCALING_BETA: Final = "autoscaling/v2beta"
_AUTOSCALING_V2BETA2: Final = "autoscaling/v2beta2"
_DEVICE_BETAS: Final = ("resource.k8s.io/v1beta1", "resource.k8s.io/v1beta2")
_OF_DEVICES: Final = frozenset(
    {RESOURCE_CLAIM.kind, RESOURCE_CLAIM_TEMPLATE.kind, DEVICE_CLASS.kind, RESOURCE_SLICE.kind}
)
_POLICY_V1BETA1: Final = "policy/v1beta1"
# The names are those of kustomize/api/konfig/general.go.
_KUSTOMIZE: Final = "kustomize.config.k8s.io/"
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_CHART: Final = "Chart.yaml"
_BOTH: Final = "for a what-if that compares both configurations"
# Kinds of configuration files of programs. The API server does not serve these kinds.
_CONFIGURATIONS: Final = {
    "KubeSchedulerConfiguration": (
        f"kube-scheduler, not an object; use --config, or --new-config {_BOTH}"
    ),
    "DeschedulerPolicy": "the descheduler, not an object; use fairlead whatif --descheduler",
}
_BATCH_CONFIGURATION: Final = (
    f"a batch scheduler, not an object; use --batch-config, or --new-batch-config {_BOTH}"
)
# The kinds whose objects are also read in the versions of `_FORMER_API_VERSIONS`.
_RENAMED: Final = frozenset(
    {
        "Deployment",
        "ReplicaSet",
        "StatefulSet",
        "DaemonSet",
        "CronJob",
        "RuntimeClass",
        "CSINode",
        "CSIDriver",
        "CSIStorageCapacity",
        "PodDisruptionBudget",
        "PriorityClass",
        "DeviceTaintRule",
    }
)
# (parent, field) of the maps whose values are texts; Go decodes null as the text "".
_TEXT_MAPS: Final = frozenset(
    (
        ("metadata", "labels"),
        ("metadata", "annotations"),
        ("spec", "nodeSelector"),
        ("scheduling", "nodeSelector"),
        ("selector", "matchLabels"),
        ("labelSelector", "matchLabels"),
        ("namespaceSelector", "matchLabels"),
    )
)


def storable_object(source: str, value: Any) -> Json:
    """Return the object `value` of the file `source` in the form that the store accepts.

    The result has the API version in which Fairlead reads such objects. Raises InputError if
    `value` is not an object, or if its kind, version, name, namespace or uid is invalid.
    """
    _require_object(source, value)
    kind = value["kind"]
    metadata = value.get("metadata")
    if not isinstance(metadata, dict | None):
        problem = f"expected an object, got {type_name(metadata)}"
        title = f"{kind} {display_name(value)}"
        raise InputError(source, problem, object_name=title, field="metadata")
    if not isinstance(metadata, dict) or metadata.get("name") in (None, ""):
        is_generated = isinstance(metadata, dict) and metadata.get("generateName")
        hint = "; kubectl apply refuses generateName" if is_generated else ""
        raise InputError(
            source,
            f"is required{hint}",
            object_name=f"{kind} {display_name(value)}",
            field="metadata.name",
        )
    for field in ("name", "namespace", "uid"):
        if not isinstance(metadata.get(field, ""), str | None):
            # In YAML, the words n, y, no, yes, off and on without quotes are booleans.
            hint = "; put it in quotes" if isinstance(metadata[field], bool | int) else ""
            raise InputError(
                source,
                f"expected text, got {type_name(metadata[field])}{hint}",
                object_name=f"{kind} {display_name(value)}",
                field=f"metadata.{field}",
            )
    clean = _storable(source, f"{kind} {display_name(value)}", value)
    if kind == HORIZONTAL_POD_AUTOSCALER.kind:
        clean = _current_autoscaler(clean)
    elif kind == DEVICE_TAINT_RULE.kind:
        _check_device_selector(source, clean)
    elif clean["apiVersion"] == _POLICY_V1BETA1:
        clean = _current_budget(clean)
    elif clean["apiVersion"] in _DEVICE_BETAS:
        # Imported only when needed, because few dumps have these versions.
        from fairlead.apiserver.conversion.device import new_device_object  # noqa: PLC0415

        clean = new_device_object(clean)
    clean["apiVersion"] = _current_api_version(source, clean)
    return clean


def _require_object(source: str, value: Any) -> None:
    """Raise InputError if `value` is not an object with a kind and a well-formed apiVersion."""
    if not isinstance(value, dict):
        raise InputError(
            source, f"expected an object with apiVersion and kind, got {type_name(value)}"
        )
    if problem := _no_object(source, value):
        raise InputError(source, problem)
    for field in ("kind", "apiVersion"):
        if not isinstance(value.get(field), str) or not value[field]:
            raise InputError(
                source, "is required and must be text", object_name=display_name(value), field=field
            )
    if not _API_VERSION.fullmatch(value["apiVersion"]):
        problem = f"{value['apiVersion']!r} is neither VERSION nor GROUP/VERSION, such as apps/v1"
        title = f"{value['kind']} {display_name(value)}"
        raise InputError(source, problem, object_name=title, field="apiVersion")


def _no_object(source: str, value: Json) -> str:
    """Return the likely reason why the map `value` is not an object; "" if no reason is likely.

    The reason is a part of an error message.
    """
    name, version = source.rpartition("/")[2], value.get("apiVersion")
    if str(version).startswith(_KUSTOMIZE) or (name in _KUSTOMIZATIONS and version is None):
        return "is an input of kustomize; use the output of kustomize build instead"
    if "kind" in value:
        of = _CONFIGURATIONS.get(str(value["kind"]))
        return f"is a configuration of {of}" if of else ""
    if value.keys() >= {"actions", "tiers"}:
        return f"is a configuration of {_BATCH_CONFIGURATION}"
    if name == _CHART:
        return "is a file of a Helm chart; use the output of helm template instead"
    if "items" in value:  # kubectl writes the kind of a List after its items
        return "is a list without a kind; the file may be cut off"
    if "apiVersion" not in value and ("cluster" in value or "events" in value):
        return "is a scenario, not a list of objects; use fairlead simulate"
    return ""


def _check_device_selector(source: str, value: Json) -> None:
    """Raise InputError if a DeviceTaintRule has a selector field that Kubernetes 1.35 removed."""
    spec = value.get("spec")
    selector = spec.get("deviceSelector") if isinstance(spec, dict) else None
    for field in ("deviceClassName", "selectors"):
        if isinstance(selector, dict) and field in selector:
            raise InputError(
                source,
                "is not supported; Kubernetes 1.35 removed it",
                object_name=f"{value['kind']} {display_name(value)}",
                field=f"spec.deviceSelector.{field}",
            )


def _current_autoscaler(value: Json) -> Json:
    """Return the HorizontalPodAutoscaler `value`, converted from v1 or v2beta2 to v2.

    Returns `value` unchanged if it has another version. An object of v1 is also unchanged if its
    spec, status or annotations are not a map.
    """
    if value["apiVersion"] == _AUTOSCALING_V2BETA2:  # v2beta2 has the fields of v2
        return {**value, "apiVersion": HORIZONTAL_POD_AUTOSCALER.api_version}
    notes = value["metadata"].get("annotations", {})
    parts = (value.get("spec", {}), value.get("status", {}), notes)
    if value["apiVersion"] != _AUTOSCALING_V1 or not all(isinstance(one, dict) for one in parts):
        return value
    # Imported only when needed, because few dumps have this version.
    from fairlead.apiserver.conversion.autoscaler import new_autoscaler  # noqa: PLC0415

    return {**new_autoscaler(value), "apiVersion": HORIZONTAL_POD_AUTOSCALER.api_version}


def _current_budget(value: Json) -> Json:
    """Return the PodDisruptionBudget `value` of v1beta1, without its selector if it is empty."""
    # upstream: pkg/apis/policy/v1beta1/zz_generated.conversion.go, pkg/apis/policy/helper.go:
    # NonV1beta1MatchNoneSelector
    spec = value.get("spec")
    selector = spec.get("selector") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(selector, dict) or any(selector.values()):
        return value
    return {**value, "spec": {name: one for name, one in spec.items() if name != "selector"}}


def _current_api_version(source: str, value: Json) -> str:
    """Return the API version in which Fairlead reads the object `value`.

    An object of an unknown kind keeps its version. Raises InputError for a version that is not
    supported.
    """
    version, kind = value["apiVersion"], value["kind"]
    other = find_kind(kind) if version == "v1" else None
    if other is not None and other.api_version != version and kind_of(value) not in KINDS:
        problem = f"v1 has no kind {kind}; {other.api_version} has"
        title = f"{kind} {display_name(value)}"
        raise InputError(source, problem, object_name=title, field="apiVersion")
    if kind in _RENAMED:
        version = _FORMER_API_VERSIONS.get(version, version)
    if kind == HORIZONTAL_POD_AUTOSCALER.kind and version.startswith(_AUTOSCALING_BETA):
        return str(version)  # stored, but not interpreted
    known = _VERSIONS.get((version.rpartition("/")[0], kind), version)
    if version == known != "v1" and "/" not in version:  # the core group has only v1
        named = find_kind(kind)
        known = "v1" if named is None else named.api_version
    if version != known:
        problem = f"{version} is not supported; expected {known}"
        title = f"{kind} {display_name(value)}"
        raise InputError(source, problem, object_name=title, field="apiVersion")
    return str(version)


def is_older_version(kind: Kind, version: str) -> bool:
    """Return whether `version` is an older version in which all objects of `kind` can be read.

    The result is False for the kind DeviceTaintRule: older versions have a field that Kubernetes
    1.35 removed, and rules with this field are refused.
    """
    api_version = f"{kind.group}/{version}"
    if kind.kind == HORIZONTAL_POD_AUTOSCALER.kind:
        return api_version in (_AUTOSCALING_V1, _AUTOSCALING_V2BETA2)
    if kind.kind in _OF_DEVICES:
        return api_version in _DEVICE_BETAS
    is_renamed = kind.kind in _RENAMED and kind.kind != DEVICE_TAINT_RULE.kind
    return is_renamed and _FORMER_API_VERSIONS.get(api_version) == kind.api_version


def _storable(source: str, title: str, value: Json) -> Json:
    """Return `value` without null members and managedFields.

    Raises InputError if `value` cannot be stored.
    """
    metadata = {key: item for key, item in value["metadata"].items() if key != "managedFields"}
    try:
        clean: Json = _without_nulls({**value, "metadata": metadata})
    except RecursionError:
        raise InputError(source, "is nested too deeply", object_name=title) from None
    except OverflowError:
        field, number = next(_long_integers(value, ""))
        problem = f"the integer {one_line(str(number), 40)} does not fit into 64 bits"
        raise InputError(source, problem, object_name=title, field=field) from None
    return clean


def _without_nulls(value: Any, parent: str = "", name: str = "") -> Any:
    """Return `value` without null members. Raises OverflowError for an integer over 64 bits.

    Null elements of lists are kept (see `api.codec.without_nulls`).

    `parent` and `name` are the last two steps of the path of `value`, such as spec and
    nodeSelector. In maps of strings (`_TEXT_MAPS`), null becomes "", as in the API server. So a
    nodeSelector with `disktype:`, without a value, selects only nodes whose label `disktype` is
    empty.
    """
    if isinstance(value, dict):
        if (parent, name) in _TEXT_MAPS:
            texts = value.items()
            return {key: "" if item is None else _without_nulls(item) for key, item in texts}
        return {
            key: _without_nulls(item, name, key) for key, item in value.items() if item is not None
        }
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if type(value) is int and not -_INTEGER_BOUND <= value < _INTEGER_BOUND:
        raise OverflowError
    return value


def _long_integers(value: Any, path: str) -> Iterator[tuple[str, int]]:
    """Yield (path, integer) for every integer over 64 bits."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _long_integers(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _long_integers(item, f"{path}[{index}]")
    elif type(value) is int and not -_INTEGER_BOUND <= value < _INTEGER_BOUND:
        yield path, value


def type_name(value: Any) -> str:
    """Return the JSON type of `value` as text."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "an object"
