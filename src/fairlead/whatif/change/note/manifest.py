"""Notes about manifests that do not do what their author may expect.

- Kubernetes no longer serves the apiVersion of the manifest.
- The object is a hook that Helm or Argo CD creates at another time, such as `helm test`.
- A field was removed from the manifest, but the existing object has no annotation
  last-applied-configuration. Then kubectl apply cannot know that the field was removed. Helm knows
  the field from its last release.
- A PodDisruptionBudget selects no pod.
- A ConfigMap or Secret that pods need does not exist (`absent_reference`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from fairlead.api.codec import decode
from fairlead.api.json import Json, at, mapping
from fairlead.api.objects import PodDisruptionBudget
from fairlead.api.selector import selector_matches
from fairlead.api.text.name_list import listed
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import (
    DAEMON_SET,
    DEPLOYMENT,
    KINDS,
    POD,
    POD_DISRUPTION_BUDGET,
    STATEFUL_SET,
    find_kind,
    kind_of,
)
from fairlead.apiserver.patch.managedfields.server_side_apply import LAST_APPLIED
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.engine.configuration.release import NEWEST
from fairlead.whatif.change.note.absent_reference import absent_reference_notes
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

_NAMED_MAX: Final = 3
_TEMPLATED: Final = (DEPLOYMENT, STATEFUL_SET, DAEMON_SET)
# Annotations of hooks, and the hooks that belong to an installation, upgrade or sync.
# upstream: helm pkg/release/hook.go, argo-cd gitops-engine/pkg/sync/common/types.go
_HOOKS: Final = {
    "helm.sh/hook": ("crd-install", "pre-install", "post-install", "pre-upgrade", "post-upgrade"),
    "argocd.argoproj.io/hook": ("PreSync", "Sync", "PostSync"),
}


def manifest_notes(
    written: Sequence[tuple[Manifest, Json]],
    kept: Iterable[tuple[Manifest, list[str]]],
    inventory: Inventory,
) -> Iterator[str]:
    """Yield the notes about the manifests in `written`.

    `written` contains each applied manifest and its original value from the file. `kept` contains
    each object that existed before, with the result of `kept_fields`. `inventory` contains all
    objects after the apply.
    """
    yield from _version_notes(written)
    yield from _hook_notes(manifest for manifest, _ in written)
    yield from _kept_field_notes(kept)
    yield from _empty_budget_notes([manifest for manifest, _ in written], inventory)
    yield from absent_reference_notes((manifest for manifest, _ in written), inventory)


def _version_notes(written: Iterable[tuple[Manifest, Json]]) -> Iterator[str]:
    """Yield a note about the manifests whose apiVersion the API server no longer serves."""
    former = []
    for manifest, value in written:
        kind = kind_of({**manifest.value, "apiVersion": value["apiVersion"]})
        current = find_kind(manifest.kind.kind)
        if kind in KINDS or current is None or current.group != manifest.kind.group:
            continue
        former.append(f"{manifest.title} ({value['apiVersion']}, not {current.api_version})")
    if former:
        yield (
            f"Kubernetes {NEWEST} does not serve these versions by default, so kubectl apply fails "
            f"there: {listed(former, _NAMED_MAX)}."
        )


def _hook_notes(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note about hooks for other events than an installation, upgrade or sync.

    A what-if creates the objects of such hooks, for example the Job of a pre-delete hook. Helm and
    Argo CD would not create them in an installation, upgrade or sync.
    """
    others = []
    for manifest in manifests:
        annotations = manifest.value["metadata"].get("annotations", {})
        for name, created in _HOOKS.items():
            hooks = [one.strip() for one in str(annotations.get(name, "")).split(",")]
            if name in annotations and not any(one in created for one in hooks):
                others.append(f"{manifest.title} ({name}: {', '.join(hooks)})")
    if others:
        yield (
            "An upgrade of Helm or a sync of Argo CD does not create these hooks, but this answer "
            f"does: {listed(others, _NAMED_MAX)}. Apply the manifests without them (helm template "
            "--no-hooks)."
        )


def kept_fields(existing: Manifest, modified: Json, result: Json) -> Iterator[str]:
    """Yield the paths of the fields in `result` that neither `modified` nor its defaults contain.

    `result` is `existing` after `kubectl apply` of `modified`. Only the specs of workloads are
    compared, without metadata. Nothing is yielded if `existing` has the annotation
    last-applied-configuration, in which kubectl finds the removed fields.
    """
    if existing.kind not in _TEMPLATED:
        return
    if LAST_APPLIED in existing.value["metadata"].get("annotations", {}):
        return
    with suppress(ApiError):  # the simulation reports malformed fields when it loads the objects
        wanted, kept = (
            API_SERVER.default(existing.kind, API_SERVER.decode(existing.kind, one))
            for one in ({**modified, "apiVersion": result["apiVersion"]}, result)
        )
        yield from _missing(wanted["spec"], kept["spec"], "spec")


def _kept_field_notes(kept: Iterable[tuple[Manifest, list[str]]]) -> Iterator[str]:
    """Yield a note about the fields that the apply keeps although the manifests lack them.

    `kept` has the existing objects, each with the result of `kept_fields`.
    """
    texts = [f"{listed(paths, _NAMED_MAX)} of {one.title}" for one, paths in kept if paths]
    if texts:
        yield (
            "--apply keeps fields that the manifest lacks: "
            f"{'; '.join(texts[:_NAMED_MAX])}{_more(len(texts) - _NAMED_MAX)}. kubectl apply also "
            f"keeps them if the object has no annotation {LAST_APPLIED}. Helm removes the fields "
            "that its last release set. To remove a field, use --set "
            "KIND/NAMESPACE/NAME:FIELD=null."
        )


def _empty_budget_notes(manifests: Iterable[Manifest], inventory: Inventory) -> Iterator[str]:
    """Yield a note about the budgets in `manifests` that select no pods of `inventory`."""
    budgets = {one.ref.key: one for one in manifests if one.kind is POD_DISRUPTION_BUDGET}
    selectors = {}
    for key in budgets:
        namespace, _, name = key.partition("/")
        budget = inventory.get(POD_DISRUPTION_BUDGET, namespace, name)
        view = None if budget is None else decode(budget.value)
        if isinstance(view, PodDisruptionBudget):
            selectors[key] = view.spec.selector
    for namespace, labels in _pod_labels(inventory) if selectors else ():
        for key, selector in list(selectors.items()):
            if key.startswith(f"{namespace}/") and selector_matches(selector, labels):
                del selectors[key]
    if selectors:
        named = listed([budgets[key].title for key in selectors], _NAMED_MAX)
        yield f"These budgets select no pod, and no pod template of a workload: {named}."


def _pod_labels(inventory: Inventory) -> Iterator[tuple[str, Json]]:
    """Yield (namespace, labels) of each pod, and of the pod template of each other object."""
    for kind in inventory.kinds:
        if kind is POD:
            pods = (one.pod.metadata for one in inventory.of_kind(POD))
            yield from ((meta.namespace, meta.labels) for meta in pods)
            continue
        for one in inventory.of_kind(kind) if kind.namespaced else ():
            yield one.ref.namespace, mapping(at(one.pod_template, "metadata", "labels"))


def _more(objects: int) -> str:
    return f"; {objects:,} more objects" if objects > 0 else ""


def _missing(wanted: Any, kept: Any, path: str) -> Iterator[str]:
    """Yield the paths of the fields and list items that are in `kept` but not in `wanted`."""
    if isinstance(kept, list) and isinstance(wanted, list):
        named = [{one["name"]: one for one in items if _is_named(one)} for items in (wanted, kept)]
        if len(named[1]) == len(kept):
            for name, value in named[1].items():
                yield from _missing(named[0].get(name), value, f"{path}[{name}]")
    elif isinstance(kept, dict) and isinstance(wanted, dict):
        for name, value in kept.items():
            if name != "metadata":  # its annotations, as of kubectl rollout restart, matter little
                yield from _missing(wanted.get(name), value, f"{path}.{name}")
    elif wanted is None and kept is not None and kept not in ({}, []):
        yield path


def _is_named(item: Any) -> bool:
    return isinstance(item, dict) and "name" in item
