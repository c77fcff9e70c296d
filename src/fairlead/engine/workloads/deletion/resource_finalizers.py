"""ResourceFinalizers: removes the finalizers that operators have put on custom resources.

KubeVirt, Strimzi, Crossplane and other operators put finalizers on their resources. The operators
remove these finalizers when they have cleaned up after a deletion. A simulation has none of these
programs. If this controller did not run, a resource that is deleted with its owner would stay
forever, and its pods would stay, too. For example, the pod of a KubeVirt VirtualMachine belongs to
a VirtualMachineInstance with two such finalizers.

If a resource was already being deleted when the cluster dump was written, its finalizers stay. The
operator may be waiting for something that the dump does not show.

While a resource has the finalizer `foregroundDeletion` or `orphan`, only the garbage collector
patches its finalizers. A patch replaces the whole list. So two patches at the same time could each
restore the finalizer that the other patch removed.

upstream: github.com/kubevirt/kubevirt pkg/virt-controller/watch/vmi/vmi.go: sync
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from msgspec import Struct, field

from fairlead.api.finalizer import FOREGROUND, ORPHAN, TERMINATION
from fairlead.api.objects import Unstructured
from fairlead.engine.core.command import Command, PatchObject
from fairlead.engine.core.controller import NoDeadlines
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import ObjectChanged, ObjectsLoaded, Stimulus
from fairlead.engine.workloads.deletion.in_use_protection import FINALIZERS
from fairlead.engine.workloads.identity import object_ref

_SIMULATED: Final = frozenset((TERMINATION, *FINALIZERS.values()))


class ResourceFinalizers(NoDeadlines, Struct):
    """Removes the finalizers of custom resources that are being deleted.

    If a resource was already being deleted when the cluster dump was written, its finalizers stay.
    """

    issuer: ClassVar[Issuer] = controller_account("generic-garbage-collector")
    interest: ClassVar[Interest] = Interest(
        changed=(Unstructured,), deleted=(), succeeded=(), failed=(), readiness=False
    )

    _ending: dict[str, None] = field(default_factory=dict)  # uids of resources that stay

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Remove finalizers of a changed custom resource that is being deleted.

        This method does not remove the finalizers of simulated controllers, because these
        controllers remove their finalizers themselves. Custom resources that were already being
        deleted when they were loaded keep all their finalizers.
        """
        match stimulus:
            case ObjectChanged(Unstructured() as one):
                return [*self._released(one)]
            case ObjectsLoaded():
                loaded = (one for one in stimulus.others if isinstance(one, Unstructured))
                ending = (one.metadata for one in loaded if one.metadata.deletion_timestamp)
                self._ending |= dict.fromkeys(meta.uid for meta in ending)
                return []
            case _:
                return []

    def _released(self, one: Unstructured) -> Iterator[Command]:
        meta = one.metadata
        if not meta.deletion_timestamp or meta.uid in self._ending:
            return
        if FOREGROUND in meta.finalizers or ORPHAN in meta.finalizers:
            return
        kept = [name for name in meta.finalizers if name in _SIMULATED]
        if len(kept) < len(meta.finalizers):
            yield PatchObject(object_ref(one), {"metadata": {"finalizers": kept or None}})
