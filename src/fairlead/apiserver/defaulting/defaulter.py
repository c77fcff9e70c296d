"""The defaulter: applies all defaults to a decoded object.

First, an object gets the defaults that `api.facts` states for single fields. Then, if `RULES` has a
rule for the type of the object, this rule is applied. As in upstream's generated functions, an
object gets its defaults before the objects inside it.

upstream: pkg/apis/*/*/zz_generated.defaults.go,
pkg/apis/core/v1/defaults.go:SetDefaults_Service, pkg/apis/networking/v1/defaults.go,
pkg/apis/rbac/v1/defaults.go,
pkg/apis/resource/v1/defaults.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import is_
from typing import Any, Final

from fairlead.api.facts import facts_of
from fairlead.api.json import Json
from fairlead.apiserver.defaulting.amount import AMOUNT_RULES
from fairlead.apiserver.defaulting.definition import DEFINITION_RULES
from fairlead.apiserver.defaulting.fill import Rule, filled, replaced
from fairlead.apiserver.defaulting.pod import POD_RULES
from fairlead.apiserver.defaulting.workload import WORKLOAD_RULES
from fairlead.apiserver.schema.model import Schema, Type

# --- services and RBAC ---------------------------------------------------------------------------


RBAC: Final = "rbac.authorization.k8s.io"
_STICKY_S: Final = 10_800
_EXTERNALLY_ACCESSIBLE: Final = ("NodePort", "LoadBalancer")


def _service_spec(spec: Json) -> Json:
    spec = _with_affinity(spec)
    type_ = spec["type"]
    if type_ in _EXTERNALLY_ACCESSIBLE or (type_ == "ClusterIP" and spec.get("externalIPs")):
        spec = filled(spec, {"externalTrafficPolicy": "Cluster"})
    if type_ in (*_EXTERNALLY_ACCESSIBLE, "ClusterIP"):
        spec = filled(spec, {"internalTrafficPolicy": "Cluster"})
    if type_ == "LoadBalancer":
        spec = filled(spec, {"allocateLoadBalancerNodePorts": True})
    return spec


def _with_affinity(spec: Json) -> Json:
    if spec["sessionAffinity"] == "None":
        return {key: value for key, value in spec.items() if key != "sessionAffinityConfig"}
    if spec["sessionAffinity"] != "ClientIP":
        return spec
    config = spec.get("sessionAffinityConfig") or {}
    client = filled(config.get("clientIP") or {}, {"timeoutSeconds": _STICKY_S})
    return replaced(spec, "sessionAffinityConfig", {**config, "clientIP": client})


def _service_port(port: Json) -> Json:
    if port.get("targetPort") in (None, "", 0):
        return {**port, "targetPort": port["port"]}
    return port


def _balancer_address(address: Json) -> Json:
    # Only a Service of type LoadBalancer can have such an address.
    return filled(address, {"ipMode": "VIP"}) if address.get("ip") else address


def _network_policy_spec(spec: Json) -> Json:
    if spec.get("policyTypes"):
        return spec
    types = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    return {**spec, "policyTypes": types}


def _subject(subject: Json) -> Json:
    if subject.get("kind") in ("User", "Group"):
        return filled(subject, {"apiGroup": RBAC})
    return subject


SERVICE_RULES: Final[Mapping[str, Rule]] = {
    "v1.ServiceSpec": _service_spec,
    "v1.ServicePort": _service_port,
    "v1.LoadBalancerIngress": _balancer_address,
    "v1.NetworkPolicySpec": _network_policy_spec,
    "rbac.v1.Subject": _subject,
}


# --- devices -------------------------------------------------------------------------------------


def _device_request(request: Json) -> Json:
    if request["allocationMode"] == "ExactCount":
        return filled(request, {"count": 1})
    return request


DEVICE_RULES: Final[Mapping[str, Rule]] = {
    "v1.ExactDeviceRequest": _device_request,
    "v1.DeviceSubRequest": _device_request,
}


Complete = Callable[[Any], Any]

# Rules by type name: `v1.Container`, or `core.v1.Event` if two groups have a type of that name.
RULES: Final[Mapping[str, Rule]] = {
    **POD_RULES,
    **AMOUNT_RULES,
    **SERVICE_RULES,
    **WORKLOAD_RULES,
    **DEVICE_RULES,
    **DEFINITION_RULES,
}


def completed(schema: Schema, obj: Json) -> Json:
    """Return `obj` with all defaults of its type `schema`; `schema.decoder` has decoded `obj`."""
    complete = _completer(schema)
    return obj if complete is None else complete(obj)


_COMPLETERS: Final[dict[Schema, Complete]] = {}


def _completer(schema: Schema) -> Complete | None:
    """Return the compiled function that sets a type's defaults; None if the type has none."""
    if not _concerned(schema):
        return None
    made = _COMPLETERS.get(schema)
    if made is not None:
        return made
    match schema.type:
        case Type.OBJECT:
            return _of_object(schema)
        case Type.LIST:
            return _of_list(schema)
        case _:
            return _of_map(schema)


def _of_object(schema: Schema) -> Complete:
    defaults = facts_of(schema.long_name).defaults
    rule = _rule_of(schema)
    fields: list[tuple[str, Complete]] = []

    def complete(value: Json | None) -> Json | None:
        if value is None:
            return None
        if defaults:
            value = filled(value, defaults)
        if rule is not None:
            value = rule(value)
        made = value
        for key, inner in fields:
            if key in value:
                before = value[key]
                after = inner(before)
                if after is not before:
                    made = {**value} if made is value else made
                    made[key] = after
        return made

    _COMPLETERS[schema] = complete
    for key, field in schema.fields.items():
        inner = _completer(field.schema)
        if inner is not None:
            fields.append((key, inner))
    return complete


def _of_list(schema: Schema) -> Complete:
    def complete(value: list[Any] | None) -> list[Any] | None:
        if value is None:
            return None
        made = list(map(inner, value))
        return value if all(map(is_, made, value)) else made

    _COMPLETERS[schema] = complete
    inner = _inner(schema)
    return complete


def _of_map(schema: Schema) -> Complete:
    def complete(value: Json | None) -> Json | None:
        if value is None:
            return None
        made = {key: inner(item) for key, item in value.items()}
        return value if all(map(is_, made.values(), value.values())) else made

    _COMPLETERS[schema] = complete
    inner = _inner(schema)
    return complete


def _inner(schema: Schema) -> Complete:
    # `_completer` compiles a list or map only if the type of its items has defaults.
    assert schema.items is not None
    inner = _completer(schema.items)
    assert inner is not None
    return inner


def _rule_of(schema: Schema) -> Rule | None:
    return RULES.get(schema.short_name) or RULES.get(schema.long_name)


@cache
def _concerned(schema: Schema) -> bool:
    """Return whether the type, or any type inside it, has defaults."""
    seen: set[int] = set()
    rest = [schema]
    while rest:
        one = rest.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if one.type is Type.OBJECT and (_rule_of(one) or facts_of(one.long_name).defaults):
            return True
        rest += [field.schema for field in one.fields.values()]
        if one.items:
            rest.append(one.items)
    return False
