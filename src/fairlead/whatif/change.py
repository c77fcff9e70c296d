"""Change: what `fairlead whatif` is asked about, checked against the snapshot it changes.

The parts of a change happen at one instant, in a fixed order that does not depend on how the
command line was written: objects are deleted, applied, scaled, then nodes cordoned and drained.
So one may delete an object and apply a new one of its name, or cordon a node that comes new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from fairlead.apiserver.kind import NAMESPACE, NODE, PRIORITY_CLASS
from fairlead.apiserver.merge_patch import merge_patch
from fairlead.core.command import Command
from fairlead.whatif import command_making
from fairlead.whatif.documents import read
from fairlead.whatif.experiment import Step
from fairlead.whatif.inventory import Inventory
from fairlead.whatif.limits import refuse_excess
from fairlead.whatif.manifest import DEFAULT_NAMESPACE, Manifest, manifests
from fairlead.whatif.priority_classes import refuse_absent_classes
from fairlead.whatif.scaling import parse_scale
from fairlead.whatif.snapshot import Snapshot

NO_CHANGE: Final = "No change was asked for"

_FIRST: Final = (NAMESPACE, PRIORITY_CLASS, NODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What to change, as the user wrote it; `namespace` "" means every namespace."""

    apply: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    scale: tuple[str, ...] = ()
    cordon: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    config: str | None = None
    plugin: tuple[str, ...] = ()
    namespace: str = ""

    @property
    def words(self) -> list[str]:
        """The change as on the command line, for titles and results."""
        parts = {
            "--delete": self.delete,
            "--apply": self.apply,
            "--scale": self.scale,
            "--cordon": self.cordon,
            "--drain": self.drain,
            "--config": (self.config,) if self.config else (),
            "--plugin": self.plugin,
        }
        return [f"{option} {value}" for option, values in parts.items() for value in values]

    @property
    def title(self) -> str:
        """What stands above an answer; where nothing was asked for, that."""
        return f"What if: {' '.join(self.words)}" if self.words else NO_CHANGE


@dataclass(slots=True)
class _Steps:
    """Collects the steps of a change while `inventory` follows what they do."""

    change: Change
    inventory: Inventory
    steps: list[Step] = field(default_factory=list)

    def add(self, what: str, source: str, *commands: Command) -> None:
        self.steps.append(Step(0, commands, source, what))


def steps_of_change(change: Change, snapshot: Snapshot) -> list[Step]:
    """The steps of `change`, all at the start of virtual time, in order.

    Raises InputError for what cannot be read, found or allowed.
    """
    collected = _Steps(change, Inventory(snapshot.manifests))
    _delete(collected)
    _apply(collected)
    for text in change.scale:
        command = parse_scale("--scale", text, collected.inventory, change.namespace)
        collected.add(text, "--scale", command)
    for name in _nodes("--cordon", change.cordon, collected.inventory):
        collected.add(name, "--cordon", command_making.cordon(name))
    for name in _nodes("--drain", change.drain, collected.inventory):
        collected.add(name, "--drain", command_making.drain(name))
    return collected.steps


def _delete(collected: _Steps) -> None:
    for text in collected.change.delete:
        target = collected.inventory.find_deletable("--delete", text, collected.change.namespace)
        collected.inventory.remove(target)
        collected.add(target.title, "--delete", command_making.delete(target.ref))


def _apply(collected: _Steps) -> None:
    inventory = collected.inventory
    namespace = collected.change.namespace or DEFAULT_NAMESPACE
    documents = [document for path in collected.change.apply for document in read(path)]
    found = manifests(documents, namespace)
    refuse_excess(found)
    for manifest in sorted(found, key=_rank):
        existing = inventory.get(manifest.kind, manifest.ref.namespace, manifest.ref.name)
        inventory.add(manifest if existing is None else _merged(existing, manifest))
        commands = command_making.apply(manifest, existing)
        collected.add(manifest.title, manifest.source, *commands)
    refuse_absent_classes(found, inventory)


def _merged(existing: Manifest, manifest: Manifest) -> Manifest:
    """What `existing` will be after the merge."""
    return replace(existing, value=merge_patch(existing.value, manifest.value))


def _rank(manifest: Manifest) -> int:
    """What others refer to comes first; the rest keeps its order (sorting is stable)."""
    return _FIRST.index(manifest.kind) if manifest.kind in _FIRST else len(_FIRST)


def _nodes(option: str, texts: tuple[str, ...], inventory: Inventory) -> Iterator[str]:
    """The nodes that `texts` mean, each once, in order."""
    chosen = dict.fromkeys(name for text in texts for name in inventory.nodes(option, text))
    yield from chosen
