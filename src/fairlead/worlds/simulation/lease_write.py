"""LeaseWrites: creates the Lease of a node as a copy of the Lease of another node, and renews it.

If a dump has no Leases, each simulated kubelet creates a Lease at the start: 5,000 Leases in a
large cluster. The Leases of two nodes differ only in a few strings:

    own strings     the name of the node, which is the name of the Lease, of its owner and of its
                    holder; the owner's uid; renewTime; uid and creationTimestamp, which the store
                    sets
    shared          everything else

Therefore only the first Lease goes through all stages of `Store.create`. This Lease is
the template for later Leases, which are copies with their own strings. Three rules ensure that a
copy equals the Lease that the stages would create:

- A Lease with an own string that is not valid goes through all stages.
- When a Lease is created, admission reads only namespaces and quotas. The template is dropped when
  a namespace or a quota changes, and no template is made while there are quotas.
- The caller uses LeaseWrites only while no webhook or policy binding exists.

A renewal is a patch of the renewTime, and perhaps of annotations. A valid renewal of a Lease in the
namespace `kube-node-lease` skips the stages of `Store.update`: admission reads only the namespace,
which it never regards as missing, and the other parts of the Lease are valid already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.text.json_template import marker, places_in, substitution
from fairlead.api.timestamp import format_micro_time, format_timestamp, parse_timestamp
from fairlead.apiserver.kind import LEASE, NAMESPACE, RESOURCE_QUOTA
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.apiserver.registry.preparation import prepared_for_update
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import StoredChange
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.engine.core.command import Command, CreateObject, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Issuer
from fairlead.engine.core.stimulus import CommandSucceeded
from fairlead.worlds.perform import Outcome, perform

_NAMESPACE: Final = "kube-node-lease"
_READ: Final = frozenset((NAMESPACE.resource, RESOURCE_QUOTA.resource))  # by admission
_NAME, _OWNER_UID, _RENEWED, _UID, _CREATED = range(5)  # a copy's own strings


class _Template(Struct, frozen=True):
    """The first Lease, from which later Leases are copied.

    Each Lease has its own name, owner's uid, renewTime, uid and creationTimestamp. `common` is the
    manifest of the first Lease with "" in place of these strings. `copy` takes these strings of a
    new Lease, in this order, and returns the new Lease.
    """

    common: Json
    copy: Callable[[Sequence[str]], Json]


class LeaseWrites:
    """Creates the Leases of nodes in a store, most of them as copies, and renews the Leases."""

    def __init__(self, store: Store) -> None:
        """At first, there is no Lease to copy."""
        self._store = store
        self._template: _Template | None = None
        store.storage.subscribe(self._drop, lambda resource: resource in _READ)

    def perform(
        self, command: Command, now: Instant, issuer: Issuer | None = None
    ) -> Outcome | None:
        """Create or renew a Lease; return the outcome that `worlds.perform` would return.

        Returns None and changes nothing if the store must perform `command` instead.
        """
        if type(command) is CreateObject and command.manifest.get("kind") == LEASE.kind:
            return self._create(command, now, issuer)
        if type(command) is PatchObject and command.target.kind == LEASE.kind:
            return self._renew(command, issuer)
        return None

    def _create(self, command: CreateObject, now: Instant, issuer: Issuer | None) -> Outcome:
        own = _own_strings(command.manifest)
        if own is None:
            return perform(self._store, command, now, issuer=issuer)
        common = _with(command.manifest, ("", "", ""))
        if self._copy(common, own, now):
            return CommandSucceeded(command, issuer)
        outcome = perform(self._store, command, now, issuer=issuer)
        if isinstance(outcome, CommandSucceeded):
            self._learn(common, own[_NAME])
        return outcome

    def _renew(self, command: PatchObject, issuer: Issuer | None) -> Outcome | None:
        """Perform `command`, which patches a Lease; return None if the store must perform it."""
        target, storage = command.target, self._store.storage
        stored = storage.find(LEASE, _NAMESPACE, target.name)
        if stored is None or target.namespace != _NAMESPACE or not _is_renewal(command):
            return None
        patched = merge_patch(stored, command.patch)
        if target.uid not in ("", stored["metadata"]["uid"]) or patched == stored:
            return None
        strategy = self._store.registry.strategy(LEASE)
        storage.put(LEASE, prepared_for_update(LEASE, strategy, stored, patched))
        return CommandSucceeded(command, issuer)

    def _learn(self, common: Json, name: str) -> None:
        """Use the stored Lease called `name` as the template for later Leases.

        Does nothing if the Lease does not exist, or if a ResourceQuota exists, which may count
        Leases.
        """
        storage = self._store.storage
        stored = storage.find(LEASE, common["metadata"]["namespace"], name)
        if stored is not None and not storage.count(RESOURCE_QUOTA):
            self._template = _Template(common, substitution(stored, places_in(_marked(stored))))

    def _copy(self, common: Json, own: tuple[str, str, str], now: Instant) -> bool:
        """Store a copy of the template with the strings `own`; return whether a copy was stored.

        No copy is stored in three cases: there is no template, the template has other common parts
        than `common`, or a Lease with this name exists.
        """
        template = self._template
        if template is None or template.common != common:
            return False
        store, namespace, name = self._store, common["metadata"]["namespace"], own[_NAME]
        if store.find(LEASE, namespace, name) is not None:
            return False
        uid = store.ids.new_uid(LEASE, namespace, name)
        lease = template.copy((*own, uid, format_timestamp(now)))
        store.storage.put(LEASE, lease, is_arranged=True)
        return True

    def _drop(self, _: StoredChange) -> None:
        self._template = None


def _own_strings(manifest: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Return the strings that differ between Leases of nodes: name, owner's uid and renewTime.

    Return None if `manifest` is not the Lease of a node, or if one of the strings is not valid.
    """
    match manifest:
        case {
            "metadata": {
                "name": str(name),
                "namespace": str(),
                "ownerReferences": [{"name": owner, "uid": str(uid)}],
            },
            "spec": {"holderIdentity": holder, "renewTime": str(renewed)},
        } if name == owner == holder and uid and not dns_subdomain_problems(name):
            return (name, uid, renewed) if _is_micro_time(renewed) else None
    return None


def _is_renewal(command: PatchObject) -> bool:
    """Return whether `command` patches only a valid renewTime and valid annotations of a Lease."""
    match command.patch:
        case {"spec": {"renewTime": str(renewed), **fields}, **parts} if not fields:
            pass
        case _:
            return False
    match parts:
        case {"metadata": {"annotations": dict(changes), **others}, **more} if not (others or more):
            are_valid = all(value is None or type(value) is str for value in changes.values())
        case _:
            are_valid = not parts
    return are_valid and not command.subresource and _is_micro_time(renewed)


def _is_micro_time(text: str) -> bool:
    """Return whether `text` is a time with microseconds, in the form that the store writes."""
    try:
        return format_micro_time(parse_timestamp(text)) == text
    except ValueError:
        return False


def _with(lease: Mapping[str, Any], own: tuple[str, str, str]) -> Json:
    """Return `lease` with the strings `own`: the node's name, the owner's uid, and renewTime."""
    name, uid, renewed = own
    meta, spec = lease["metadata"], lease["spec"]
    owner = {**meta["ownerReferences"][0], "name": name, "uid": uid}
    return {
        **lease,
        "metadata": {**meta, "name": name, "ownerReferences": [owner]},
        "spec": {**spec, "holderIdentity": name, "renewTime": renewed},
    }


def _marked(stored: Json) -> Json:
    """Return the Lease `stored` with markers in place of the strings that differ per node."""
    marked = _with(stored, (marker(_NAME), marker(_OWNER_UID), marker(_RENEWED)))
    marked["metadata"] |= {"uid": marker(_UID), "creationTimestamp": marker(_CREATED)}
    return marked
