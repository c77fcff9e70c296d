"""Table rows of nodes, namespaces, events, and other kinds without a module of their own.

upstream: pkg/printers/internalversion/printers.go:printNode, printEvent, ...
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json, at, items, mapping, name_of, number, text
from fairlead.apiserver.printers.age import UNKNOWN, age, age_of, human_duration
from fairlead.apiserver.printers.column import Cell, printer
from fairlead.apiserver.printers.field import NONE

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE: Final = "kubernetes.io/role"


def _node(obj: Json, now: int) -> list[Cell]:
    info, addresses = mapping(obj, "status", "nodeInfo"), _addresses(obj)
    return [
        name_of(obj),
        _node_status(obj),
        ",".join(_roles(mapping(obj, "metadata", "labels"))) or NONE,
        age_of(obj, now),
        text(info, "kubeletVersion"),
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        text(info, "osImage") or UNKNOWN,
        _kernel(info),
        text(info, "containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(obj: Json) -> str:
    words = [
        "Ready" if condition.get("status") == "True" else "NotReady"
        for condition in items(obj, "status", "conditions")
        if condition.get("type") == "Ready"
    ] or ["Unknown"]
    if at(obj, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(labels: Json) -> list[str]:
    named = [key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)]
    return sorted({role for role in (*named, labels.get(_ROLE, "")) if role})


def _addresses(obj: Json) -> dict[str, str]:
    """Return the node's first address of each address type."""
    found: dict[str, str] = {}
    for address in items(obj, "status", "addresses"):
        found.setdefault(text(address, "type"), text(address, "address"))
    return found


def _kernel(info: Json) -> str:
    version, architecture = text(info, "kernelVersion"), text(info, "architecture")
    if not version:
        return UNKNOWN
    return f"{version} ({architecture})" if architecture else version


def _namespace(obj: Json, now: int) -> list[Cell]:
    return [name_of(obj), text(obj, "status", "phase"), age_of(obj, now)]


def _event(obj: Json, now: int) -> list[Cell]:
    """Return the row of the event `obj`, which has the field names of core/v1."""
    event_time = age(obj.get("eventTime"), now)
    first = age(obj["firstTimestamp"], now) if obj.get("firstTimestamp") else event_time
    last = age(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else first
    count = number(obj, "count") or 1
    series = at(obj, "series")
    if series:
        last, count = age(series.get("lastObservedTime"), now), number(series, "count")
    involved = mapping(obj, "involvedObject")
    return [
        last,
        text(obj, "type"),
        text(obj, "reason"),
        _involved(involved),
        text(involved, "fieldPath"),
        _event_source(obj),
        text(obj, "message").strip(),
        first,
        count,
        name_of(obj),
    ]


def _involved(involved: Json) -> str:
    kind, name = text(involved, "kind").lower(), text(involved, "name")
    return f"{kind}/{name}" if name else kind


def _event_source(obj: Json) -> str:
    component = text(obj, "source", "component") or text(obj, "reportingComponent")
    instance = text(obj, "source", "host") or text(obj, "reportingInstance")
    return f"{component}, {instance}" if instance else component


def _config_map(obj: Json, now: int) -> list[Cell]:
    entries = len(mapping(obj, "data")) + len(mapping(obj, "binaryData"))
    return [name_of(obj), entries, age_of(obj, now)]


def _secret(obj: Json, now: int) -> list[Cell]:
    return [name_of(obj), text(obj, "type"), len(mapping(obj, "data")), age_of(obj, now)]


def _named(obj: Json, now: int) -> list[Cell]:
    return [name_of(obj), age_of(obj, now)]


def _dated(obj: Json, _now: int) -> list[Cell]:
    return [name_of(obj), text(obj, "metadata", "creationTimestamp")]


def _resource_quota(obj: Json, now: int) -> list[Cell]:
    """Return the row of a ResourceQuota, which shows requests and limits in separate columns."""
    hard, used = mapping(obj, "status", "hard"), mapping(obj, "status", "used")
    lines = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = [line for name, line in lines.items() if name.startswith("limits.")]
    requests = [line for name, line in lines.items() if not name.startswith("limits.")]
    return [name_of(obj), ", ".join(requests), ", ".join(limits), age_of(obj, now)]


def _component_status(obj: Json, _now: int) -> list[Cell]:
    status, message, error = "Unknown", "", ""
    for condition in items(obj, "conditions"):
        if condition.get("type") == "Healthy":
            status = "Healthy" if condition.get("status") == "True" else "Unhealthy"
            message, error = text(condition, "message"), text(condition, "error")
            break
    return [name_of(obj), status, message, "" if error == "nil" else error]


def _priority_class(obj: Json, now: int) -> list[Cell]:
    return [
        name_of(obj),
        number(obj, "value"),
        bool(obj.get("globalDefault")),
        age_of(obj, now),
        text(obj, "preemptionPolicy") or "PreemptLowerPriority",
    ]


def _lease(obj: Json, now: int) -> list[Cell]:
    return [name_of(obj), text(obj, "spec", "holderIdentity"), age_of(obj, now)]


def _runtime_class(obj: Json, now: int) -> list[Cell]:
    return [name_of(obj), text(obj, "handler"), age_of(obj, now)]


def _disruption_budget(obj: Json, now: int) -> list[Cell]:
    minimum, maximum = at(obj, "spec", "minAvailable"), at(obj, "spec", "maxUnavailable")
    return [
        name_of(obj),
        "N/A" if minimum is None else str(minimum),
        "N/A" if maximum is None else str(maximum),
        number(obj, "status", "disruptionsAllowed"),
        age_of(obj, now),
    ]


def _signing_request(obj: Json, now: int) -> list[Cell]:
    seconds = at(obj, "spec", "expirationSeconds")
    return [
        name_of(obj),
        age_of(obj, now),
        text(obj, "spec", "signerName"),
        text(obj, "spec", "username"),
        NONE if seconds is None else human_duration(seconds * 1_000_000_000),
        _signing_state(obj),
    ]


def _signing_state(obj: Json) -> str:
    kinds = {text(condition, "type") for condition in items(obj, "status", "conditions")}
    words = ["Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"]
    if "Failed" in kinds:
        words.append("Failed")
    if at(obj, "status", "certificate"):
        words.append("Issued")
    return ",".join(words)


NODE: Final = printer(
    "Name/name, Status, Roles, Age, Version, Internal-IP*, External-IP*, OS-Image*, "
    "Kernel-Version*, Container-Runtime*",
    _node,
)
NAMESPACE: Final = printer("Name/name, Status, Age", _namespace)
EVENT: Final = printer(
    "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count*, "
    "Name/name*",
    _event,
)
CONFIG_MAP: Final = printer("Name/name, Data, Age", _config_map)
SECRET: Final = printer("Name/name, Type, Data, Age", _secret)
NAMED: Final = printer("Name/name, Age", _named)
DATED: Final = printer("Name/name, Created At:date", _dated, is_bare=True)
RESOURCE_QUOTA: Final = printer("Name/name, Request, Limit, Age", _resource_quota)
COMPONENT_STATUS: Final = printer("Name/name, Status, Message, Error", _component_status)
PRIORITY_CLASS: Final = printer(
    "Name/name, Value:integer, Global-Default:boolean, Age, PreemptionPolicy", _priority_class
)
LEASE: Final = printer("Name/name, Holder, Age", _lease)
RUNTIME_CLASS: Final = printer("Name/name, Handler, Age", _runtime_class)
POD_DISRUPTION_BUDGET: Final = printer(
    "Name/name, Min Available, Max Unavailable, Allowed Disruptions:integer, Age",
    _disruption_budget,
)
CERTIFICATE_SIGNING_REQUEST: Final = printer(
    "Name/name, Age, SignerName, Requestor, RequestedDuration, Condition", _signing_request
)
