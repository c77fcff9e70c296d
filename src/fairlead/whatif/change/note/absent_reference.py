"""Notes about ConfigMaps and Secrets that pods need to start, but that do not exist.

In a cluster, the containers of such a pod wait until the object exists. In a simulation, the pod
starts. A dump may lack the ConfigMaps and Secrets of some namespaces. Some dumps contain only one
ConfigMap: the configuration of a scheduler. So there is no note if the dump does not seem to list
the objects of the pod's namespace. A missing Secret of imagePullSecrets is no reason to wait: the
kubelet pulls the image without it.

upstream: pkg/kubelet/kubelet_pods.go: makeEnvironmentVariables,
pkg/volume/configmap/configmap.go and pkg/volume/secret/secret.go: SetUpAt
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fairlead.api.json import Json, mapping
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import CONFIG_MAP, NAMESPACE, POD, SECRET, Kind
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.validation.workload import WORKLOADS

_NAMED_MAX: Final = 3
_SYSTEM: Final = "kube-system"
# A controller creates this ConfigMap in each namespace.
# upstream: pkg/controller/certificates/rootcacertpublisher/publisher.go: syncNamespace
_ROOT_CERTIFICATES: Final = "kube-root-ca.crt"
# Each kind with its fields in a volume, in `envFrom` and in `env`.
_FIELDS: Final[Mapping[Kind, tuple[str, str, str]]] = {
    CONFIG_MAP: ("configMap", "configMapRef", "configMapKeyRef"),
    SECRET: ("secret", "secretRef", "secretKeyRef"),
}


def absent_reference_notes(written: Iterable[Manifest], inventory: Inventory) -> Iterator[str]:
    """Yield a note if pods of `written` need ConfigMaps or Secrets that `inventory` lacks.

    `written` are the applied objects. `inventory` contains all objects after the apply.
    """
    applied = list(written)
    new_namespaces = {one.ref.name for one in applied if one.kind is NAMESPACE}
    in_dump = _namespaces_in_dump(applied, inventory)
    missing = dict[str, None]()
    for kind in _FIELDS:
        listed_in = set().union(*in_dump.values(), new_namespaces) if in_dump[kind] else set()
        for one in applied:
            namespace = one.ref.namespace
            if namespace not in listed_in:
                continue
            for name in sorted(_needed(one, kind) - {"", _ROOT_CERTIFICATES}):
                if inventory.get(kind, namespace, name) is None:
                    missing[f"{kind.kind} {namespace}/{name} ({one.title})"] = None
    if missing:
        yield (
            "The dump and the applied files lack objects without which pods would not start in a "
            f"cluster: {listed(list(missing), _NAMED_MAX)}. Simulated pods start without them."
        )


def _namespaces_in_dump(applied: Sequence[Manifest], inventory: Inventory) -> dict[Kind, set[str]]:
    """Return the namespaces in which `inventory` has ConfigMaps and Secrets, by kind.

    The `applied` objects do not count. ConfigMaps in kube-system do not count either: snapshots
    contain the ConfigMaps of autoscalers and schedulers, but no others.
    """
    new = {one.ref for one in applied}
    found = {
        kind: {one.ref.namespace for one in inventory.of_kind(kind) if one.ref not in new}
        for kind in _FIELDS
    }
    found[CONFIG_MAP].discard(_SYSTEM)
    return found


def _needed(manifest: Manifest, kind: Kind) -> set[str]:
    """Return the names of the objects of `kind` that the pods of `manifest` need to start."""
    if manifest.kind is POD:
        spec = mapping(manifest.value, "spec")
    elif manifest.kind in WORKLOADS:
        spec = mapping(manifest.pod_template, "spec")
    else:
        return set()
    volume, env_from, env = _FIELDS[kind]
    containers = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    references: list[Json] = []
    for container in containers:
        references += (mapping(source, env_from) for source in container.get("envFrom") or ())
        variables = container.get("env") or ()
        references += (mapping(variable, "valueFrom", env) for variable in variables)
    for source in spec.get("volumes") or ():
        references.append(mapping(source, volume))
        projected = mapping(source, "projected").get("sources") or ()
        references += (mapping(part, volume) for part in projected)
    return {_name(one) for one in references if not one.get("optional")}


def _name(reference: Json) -> str:
    """Return the name in `reference`; in a volume's secret, the name is in the field secretName."""
    return str(reference.get("secretName") or reference.get("name") or "")
