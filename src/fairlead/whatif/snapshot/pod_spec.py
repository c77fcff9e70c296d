"""The pod specs of pods and workloads, and pod specs in the form that cluster-capacity reads.

In that form, a Pod may lack a name, a kind and an apiVersion.

upstream: cluster-capacity cmd/cluster-capacity/app/options/options.go: ParseAPISpec
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.apiserver.kind import POD
from fairlead.whatif.input.document import Document
from fairlead.whatif.snapshot.manifest import Manifest

_NAME: Final = "pod"


def pod_spec_of(manifest: Manifest) -> tuple[str, Json]:
    """Return (path, pod spec) of a pod or workload; the pod spec of other kinds is {}."""
    spec = manifest.value.get("spec")
    if manifest.kind is POD:
        return "spec", spec if isinstance(spec, dict) else {}
    for step in ("template", "spec"):
        spec = spec.get(step) if isinstance(spec, dict) else None
    return "spec.template.spec", spec if isinstance(spec, dict) else {}


def with_complete_pods(documents: Iterable[Document]) -> list[Document]:
    """Return `documents`, with each missing kind, apiVersion and name of a Pod filled in.

    A document without a kind is a Pod if its spec has containers. The name of a Pod without a name
    becomes its `metadata.generateName` without the final hyphen. If `generateName` is missing, too,
    the name becomes `pod`. Other documents are unchanged.
    """
    return [
        replace(one, value=_complete(one.value)) if _is_pod(one.value) else one for one in documents
    ]


def _is_pod(value: Any) -> bool:
    match value:
        case {"kind": kind, **_rest} if kind != "Pod":
            return False
        case {"kind": "Pod"} | {"spec": {"containers": list()}}:
            return True
    return False


def _complete(pod: Json) -> Json:
    meta = pod.get("metadata") or {}
    if isinstance(meta, dict) and not meta.get("name"):
        prefix = meta.get("generateName")
        name = prefix.rstrip("-.") if isinstance(prefix, str) else ""
        meta = {**meta, "name": name or _NAME}
    return {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": meta}
