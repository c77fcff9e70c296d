"""The steps of --apply: reads, checks and applies objects as kubectl apply does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from os import PathLike
from typing import Any, Final

from msgspec import json

from fairlead.api.json import Json
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, NODE, PRIORITY_CLASS
from fairlead.whatif.change.change_steps import ChangeSteps, add_created
from fairlead.whatif.change.changed_object import change_to, refuse_invalid_queues
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.kubectl_apply import applied, applied_by_server
from fairlead.whatif.change.note.manifest import kept_fields, manifest_notes
from fairlead.whatif.change.note.unsimulated_workload import unsimulated_notes
from fairlead.whatif.change.owned_object import (
    may_exist,
    owned_by,
    owner_notes,
    without_repeated_services,
)
from fairlead.whatif.change.pod_priority import priorities_in
from fairlead.whatif.input.document import Document, read
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import (
    DEFAULT_NAMESPACE,
    manifests_to_apply,
    unknown_annotations,
)
from fairlead.whatif.snapshot.validation.bound_node import refuse_absent_nodes
from fairlead.whatif.snapshot.validation.invalid_object import (
    refuse_invalid_change,
    refuse_invalid_object,
)
from fairlead.whatif.snapshot.validation.namespace import (
    refuse_absent_namespaces,
    refuse_other_namespaces,
)
from fairlead.whatif.snapshot.validation.priority_class import refuse_absent_classes
from fairlead.whatif.snapshot.validation.size_limit import refuse_excess
from fairlead.whatif.snapshot.validation.unknown_field import refuse_malformed_fields

NO_MANAGED_FIELDS: Final = (
    "The dump has no managedFields, so a server-side apply has no conflicts here; kubectl get "
    "--show-managed-fields includes them."
)
_FIRST: Final = (NAMESPACE, PRIORITY_CLASS, CUSTOM_RESOURCE_DEFINITION, NODE)


def add_applied(collected: ChangeSteps) -> None:
    """Add the steps that apply the files of the change, and notes about them. Raises InputError."""
    change, inventory, unmanaged = collected.change, collected.inventory, 0
    kept: list[tuple[Manifest, list[str]]] = []
    written, owners = _read_manifests(change, inventory)
    found = [manifest for manifest, _ in written]
    _check_applied(found, inventory)
    for manifest, value in sorted(written, key=lambda pair: _rank(pair[0])):
        existing = inventory.get(manifest.kind, manifest.ref.namespace, manifest.ref.name)
        if existing is None:
            new = manifest.without_uid()
            refuse_invalid_object(new, value)
            collected.custom_resources.refuse_invalid([new])
            collected.written[new.ref] = new
            add_created(inventory, new)
            collected.write(None, new, new.source)
            continue
        if change.server_side:
            force, unmanaged = change.force_conflicts, unmanaged + (not existing.managed_fields)
            result = applied_by_server(existing, value, collected.start, forces_conflicts=force)
        else:
            result = applied(existing, value)
            kept.append((existing, list(kept_fields(existing, value, result))))
        changed = change_to(collected, existing, result, manifest.source)
        refuse_invalid_change(existing, changed)
    refuse_invalid_queues(collected)
    refuse_absent_classes(found, inventory, collected.deleted)
    collected.notes += chain(
        owner_notes(owners),
        unsimulated_notes(
            (
                one
                for one in found
                if one.identity not in collected.resumed
                and not any(one is owner for owner in owners)
            ),
            [one.ref for one in found if collected.before(one) is not None],
        ),
        unknown_annotations(found),
        manifest_notes(written, kept, inventory),
        _kept_status(written, inventory),
    )
    if unmanaged and not change.force_conflicts:
        collected.notes.append(NO_MANAGED_FIELDS)


def _documents(place: int, given: str | PathLike[str] | Mapping[str, Any]) -> list[Document]:
    """Return the documents of `given`, an object or a path.

    `given` is the element with the index `place` of the sequence `ClusterChange.apply`.

    Raises InputError for a file that cannot be read, and for an object with values that JSON lacks.
    """
    if not isinstance(given, Mapping):
        return read(str(given))
    source = f"ClusterChange.apply[{place}]"
    try:
        return [Document(source, json.decode(json.encode(given, enc_hook=_as_dict)))]
    except (TypeError, ValueError) as cause:
        raise InputError(source, f"cannot be written as JSON: {cause}") from None
    except RecursionError:
        raise InputError(source, "cannot be written as JSON: it is nested too deeply") from None


def _as_dict(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it contains an object of the class {type(value).__name__}")


def _check_applied(found: list[Manifest], inventory: Inventory) -> None:
    """Raise InputError if an applied object exceeds a size limit.

    `found` are the objects of the applied files. Also raises InputError if the namespace of an
    object does not exist, or if a pod names a node that does not exist.
    """
    refuse_excess(found)
    refuse_absent_namespaces(found, inventory)
    refuse_absent_nodes(found, inventory)


def _read_manifests(
    change: ClusterChange, inventory: Inventory
) -> tuple[list[tuple[Manifest, Json]], list[Manifest]]:
    """Return the objects of the files to apply, and the owners among them.

    Owners are new Jobs of Volcano and new JobSets. The first list contains each object, paired with
    its value as in the file. The first list also contains the objects that the controllers of the
    owners would create: PodGroups and batch/v1 Jobs (`owned_by`). Raises InputError if a file
    cannot be read, if a field is malformed, or if the files contain no object.
    """
    namespace = change.namespace or DEFAULT_NAMESPACE
    documents = [
        one for place, given in enumerate(change.apply) for one in _documents(place, given)
    ]
    written = manifests_to_apply(documents, namespace)
    refuse_other_namespaces((manifest for manifest, _ in written), change.namespace)
    if documents and not written:
        # upstream: kubectl/pkg/cmd/apply/apply.go: Run (no objects passed to apply)
        raise InputError(documents[0].source, "contains no object")
    refuse_malformed_fields((one for one, _ in written), inventory=inventory)
    classes = priorities_in(inventory.of_kind(PRIORITY_CLASS), (one for one, _ in written))
    owners = [
        (one, owned_by(one, value, priorities=classes))
        for one, value in written
        if inventory.get(one.kind, one.ref.namespace, one.ref.name) is None
    ]
    every = chain.from_iterable(parts for _, parts in owners)
    more = manifests_to_apply(without_repeated_services(every), namespace)
    refuse_malformed_fields(one for one, _ in more)
    taken = {one.ref for one, _ in written}
    new = []
    for one, value in more:
        kind, ref = one.kind, one.ref
        if ref not in taken and inventory.get(kind, ref.namespace, ref.name) is None:
            new.append((one, value))
        elif not may_exist(one):
            problem = "exists already; the applied Job of Volcano or JobSet needs one of this name"
            raise one.refuse(problem)
    return [*written, *new], [one for one, parts in owners if parts]


def _kept_status(written: Iterable[tuple[Manifest, Json]], inventory: Inventory) -> Iterator[str]:
    """Yield a note about Nodes whose status in the applied file differs and is ignored."""
    kept = []
    for manifest, value in written:
        if manifest.kind is NODE and "status" in value:
            now = inventory.get(NODE, "", manifest.ref.name)
            if now is not None and now.value.get("status") != value["status"]:
                kept.append(manifest.ref.name)
    if kept:
        more = f" and {len(kept) - 1:,} more" if len(kept) > 1 else ""
        yield (
            f"--apply changes no status, like kubectl apply: Node {kept[0]}{more}. To change one, "
            f"use --set, such as --set node/{kept[0]}:status.allocatable.cpu=8."
        )


def _rank(manifest: Manifest) -> int:
    """Return the sort key of a manifest: kinds that other kinds refer to come first."""
    return _FIRST.index(manifest.kind) if manifest.kind in _FIRST else len(_FIRST)
