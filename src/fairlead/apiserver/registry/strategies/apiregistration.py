"""The strategy of APIServices.

upstream: kube-aggregator/pkg/registry/apiservice/strategy.go,
kube-aggregator/pkg/apis/apiregistration/validation/validation.go
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.strategy import (
    ONLY_MANAGED_FIELDS,
    PreparationContext,
    ResourceStrategy,
)
from fairlead.apiserver.validation.meta.field import Causes, invalid, required
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_subdomain,
    dns_1035_problems,
    path_segment_problems,
)
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check

# --- validation ----------------------------------------------------------------------------------


def check_api_service(obj: Json) -> Causes:
    """Yield the errors of an APIService."""
    spec = obj["spec"]
    group, version = spec.get("group", ""), spec.get("version", "")
    name = obj["metadata"].get("name", "")
    if not path_segment_problems(name) and name != f"{version}.{group}":
        why = f'must be `spec.version+"."+spec.group`: "{version}.{group}"'
        yield invalid("metadata.name", name, why)
    if not group and version != "v1":
        why = "only v1 may have an empty group and it better be legacy kube"
        yield required("spec.group", why)
    if group:
        yield from check_subdomain("spec.group", group)
    for problem in dns_1035_problems(version):
        yield invalid("spec.version", version, problem)
    names = ("groupPriorityMinimum", "versionPriority")
    yield from check_fields("spec", "apiregistration.v1.APIServiceSpec", spec, *names)
    yield from _check_backend(spec, spec.get("service"))


def _check_backend(spec: Json, service: Json | None) -> Causes:
    bundle, blind = spec.get("caBundle") or "", spec.get("insecureSkipTLSVerify", False)
    if service is None:
        if bundle:
            shown = f"{len(base64.b64decode(bundle))} bytes"
            yield invalid("spec.caBundle", shown, "local APIServices may not have a caBundle")
        if blind:
            why = "local APIServices may not have insecureSkipTLSVerify"
            yield invalid("spec.insecureSkipTLSVerify", blind, why)
        return
    names = ("namespace", "name", "port")
    yield from check_fields("spec.service", "apiregistration.v1.ServiceReference", service, *names)
    if blind and bundle:
        yield invalid("spec.insecureSkipTLSVerify", blind, "may not be true if caBundle is present")


# The condition of an APIService that this server serves itself.
LOCAL: Final[Mapping[str, str]] = {
    "type": "Available",
    "status": "True",
    "reason": "Local",
    "message": "Local APIServices are always available",
}


def _prepare_for_create(service: Json, _: PreparationContext) -> Json:
    if service["spec"].get("service") is not None:
        return service
    since = service["metadata"]["creationTimestamp"]
    return {**service, "status": {"conditions": [{**LOCAL, "lastTransitionTime": since}]}}


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "apiservices.apiregistration.k8s.io": ResourceStrategy(
        prepare_for_create=_prepare_for_create,
        allow_unconditional_update=False,
        metadata_with_status=ONLY_MANAGED_FIELDS,
        rules=KindRules(accepts_any_finalizer=True, new=json_check(check_api_service)),
        storage_prefix="apiregistration.k8s.io/apiservices",
    )
}
