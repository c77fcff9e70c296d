"""The strategy of RuntimeClasses.

upstream: pkg/registry/node/runtimeclass/strategy.go,
pkg/apis/node/validation/validation.go:ValidateRuntimeClass
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import Pod, ResourceRequirements
from fairlead.apiserver.kind import RUNTIME_CLASS
from fairlead.apiserver.registry.strategy import ResourceStrategy
from fairlead.apiserver.registry.warning.pod import OLD_LABELS
from fairlead.apiserver.validation.core.pod.spec import check_tolerations
from fairlead.apiserver.validation.core.resource import check_requirements
from fairlead.apiserver.validation.meta.change_text import internal_of
from fairlead.apiserver.validation.meta.field import Causes, duplicate, invalid, repeated_indexes
from fairlead.apiserver.validation.meta.format import dns_label_problems, dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.meta.object_meta import check_labels

# --- validation ----------------------------------------------------------------------------------

_TOLERATION: Final = ("key", "operator", "value", "effect")


def check_runtime_class(obj: Json) -> Causes:
    """Yield the errors of a RuntimeClass."""
    for problem in dns_label_problems(obj["handler"]):
        yield invalid("handler", obj["handler"], problem)
    fixed = (obj.get("overhead") or {}).get("podFixed") or {}
    yield from check_requirements("overhead", ResourceRequirements(limits=fixed))
    scheduling = obj.get("scheduling") or {}
    labels = scheduling.get("nodeSelector") or {}
    yield from check_labels("scheduling.nodeSelector", labels)
    tolerations = scheduling.get("tolerations") or []
    spec = decode_as(Pod, {"spec": {"tolerations": tolerations}}).spec
    yield from check_tolerations("scheduling.tolerations", spec.tolerations)
    keys = [[one.get(key, "") for key in _TOLERATION] for one in tolerations]
    for index in sorted(repeated_indexes(keys)):
        shown = internal_of("core.v1.Toleration", tolerations[index])
        yield duplicate(f"scheduling.tolerations[{index}]", shown)


def _runtime_class_warnings(_: Json | None, found: Json) -> Iterator[str]:
    # upstream: pkg/api/node/util.go:GetWarningsForRuntimeClass
    for key in (found.get("scheduling") or {}).get("nodeSelector") or ():
        if key in OLD_LABELS:
            yield f"scheduling.nodeSelector: {key} is {OLD_LABELS[key]}"


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    RUNTIME_CLASS.resource: ResourceStrategy(
        allow_create_on_update=True,
        allow_unconditional_update=False,
        rules=KindRules(name=dns_subdomain_problems, new=json_check(check_runtime_class)),
        warnings=_runtime_class_warnings,
    )
}
