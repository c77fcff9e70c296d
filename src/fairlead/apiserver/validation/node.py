"""RuntimeClasses, the kind of the group node.k8s.io. Nodes are in `core.node`.

upstream: pkg/apis/node/validation/validation.go:ValidateRuntimeClass
"""

from __future__ import annotations

from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import Pod, ResourceRequirements
from fairlead.apiserver.validation.core.pod.spec import check_tolerations
from fairlead.apiserver.validation.core.resource import check_requirements
from fairlead.apiserver.validation.meta.change_text import internal_of
from fairlead.apiserver.validation.meta.field import Causes, duplicate, invalid, repeated_indexes
from fairlead.apiserver.validation.meta.format import dns_label_problems
from fairlead.apiserver.validation.meta.object_meta import check_labels

_TOLERATION: Final = ("key", "operator", "value", "effect")


def check_runtime_class(obj: Json) -> Causes:
    """A RuntimeClass."""
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
