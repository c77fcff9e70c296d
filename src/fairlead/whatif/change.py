"""Change: what `fairlead whatif` is asked about, checked against the snapshot it changes.

The parts of a change happen at one instant, in a fixed order that does not depend on how the
command line was written: objects are deleted, applied, scaled, then nodes cordoned, drained and let
fail. So one may delete an object and apply a new one of its name, or cordon a node that comes new.
Failures may begin later (`--at`), and a rolling drain takes its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from fairlead.apiserver.kind import NAMESPACE, NODE, PRIORITY_CLASS
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.engine.core.command import Command
from fairlead.engine.workloads.drain.rolling_drain import Turns
from fairlead.whatif import command_making
from fairlead.whatif.deletion import deleted_with
from fairlead.whatif.documents import read
from fairlead.whatif.experiment import Step
from fairlead.whatif.failures import Failures, option_duration
from fairlead.whatif.input_error import InputError
from fairlead.whatif.inventory import Inventory
from fairlead.whatif.limits import refuse_excess
from fairlead.whatif.manifest import DEFAULT_NAMESPACE, Manifest, manifests
from fairlead.whatif.priority_classes import refuse_absent_classes
from fairlead.whatif.scaling import parse_scale
from fairlead.whatif.snapshot import Snapshot
from fairlead.whatif.turns import turns_of

NO_CHANGE: Final = "No change was asked for"

_FIRST: Final = (NAMESPACE, PRIORITY_CLASS, NODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What to change, as the user wrote it; `namespace` "" means every namespace.

    With `max_unavailable` nodes are drained in turn, so many at a time, and come back. `lasts`, a
    duration, is how long they, and nodes that fail, are away.
    """

    apply: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    scale: tuple[str, ...] = ()
    cordon: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    max_unavailable: int | None = None
    failures: Failures = field(default_factory=Failures)
    lasts: str = ""
    config: str | None = None
    plugin: tuple[str, ...] = ()
    new_batch_config: str | None = None
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
            "--max-unavailable": () if self.max_unavailable is None else (self.max_unavailable,),
        }
        after = {
            "--for": (self.lasts,) if self.lasts else (),
            "--config": (self.config,) if self.config else (),
            "--plugin": self.plugin,
            "--new-batch-config": (self.new_batch_config,) if self.new_batch_config else (),
        }
        return [*_worded(parts), *self.failures.words, *_worded(after)]

    @property
    def title(self) -> str:
        """What stands above an answer; where nothing was asked for, that."""
        return f"What if: {' '.join(self.words)}" if self.words else NO_CHANGE


def _worded(parts: Mapping[str, Iterable[object]]) -> list[str]:
    return [f"{option} {value}" for option, values in parts.items() for value in values]


@dataclass(slots=True)
class _Steps:
    """Collects the steps of a change while `inventory` follows what they do."""

    change: Change
    inventory: Inventory
    steps: list[Step] = field(default_factory=list)

    def add(self, what: str, source: str, *commands: Command) -> None:
        self.steps.append(Step(0, commands, source, what))


def steps_of_change(change: Change, snapshot: Snapshot, seed: int = 0) -> list[Step]:
    """The steps of `change` in order of time; `seed` settles which nodes a share means.

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
    _drain(collected)
    failures = replace(change.failures, lasts=change.lasts)
    for outage in failures.outages(collected.inventory, seed):
        collected.steps.extend(outage.steps())
    return sorted(collected.steps, key=lambda step: step.after)


def _drain(collected: _Steps) -> None:
    change = collected.change
    turns = _turns(change)
    for name in _nodes("--drain", change.drain, collected.inventory):
        if turns is None:
            collected.add(name, "--drain", command_making.drain(name))
        else:
            collected.add(name, "--drain", command_making.drain_in_turn(name, turns))


def _turns(change: Change) -> Turns | None:
    """How nodes take turns, None where all are drained at once. Raises InputError."""
    if change.max_unavailable is None:
        if change.lasts and not change.failures.are_asked_for:
            raise InputError("--for", "belongs to nodes that fail, or are drained in turn")
        return None
    if not change.drain:
        raise InputError("--max-unavailable", "belongs to --drain")
    away = option_duration("--for", change.lasts) or 0
    return turns_of("--max-unavailable", change.max_unavailable, away, " ".join(change.drain))


def _delete(collected: _Steps) -> None:
    for text in collected.change.delete:
        target = collected.inventory.find("--delete", text, collected.change.namespace)
        for one in deleted_with("--delete", target, collected.inventory):
            collected.inventory.remove(one)
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
