"""DumpedReplicas: similar pods of a dump, which match one DumpedTemplate.

Each pod is made when it is first read. There is a column for each string in which these pods
differ. The code that loads a dump usually reads some of these columns, such as names and nodes, but
few whole pods. The view and the text of a pod are therefore made only if something reads this pod.

    template  {"name": "▯", "image": "web:1", "nodeName": "▯"}
    columns   ["web-x2k", "web-b7q"]  ["n1", "n3"]          names = columns[0], nodes = columns[1]
    pods      replicas[1] is made from the template and the strings "web-b7q", "n3", and then kept
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any, overload

from fairlead.api.objects import Pod
from fairlead.api.pods.replicas import Replicas
from fairlead.api.text.json_template import TemplateRows
from fairlead.apiserver.kind import POD, Kind
from fairlead.apiserver.registry.dump.object import DumpedObject, DumpedTemplate
from fairlead.apiserver.storage.storage import Key


class DumpedReplicas(Replicas):
    """Pods of a dump, one for each of `texts`; `template` makes a typed view from each text."""

    def __init__(self, template: DumpedTemplate, texts: TemplateRows) -> None:
        """Each of `texts` describes one pod. `template.makes_replicas` must be True."""
        super().__init__(())
        self.template = template
        self.texts = texts
        self._made: dict[int, Pod] = {}

    # --- pods ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, index: int) -> Pod: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Pod]: ...

    def __getitem__(self, index: int | slice) -> Pod | Sequence[Pod]:
        """Return a pod, or the pods of a slice. An index always returns the same Python object."""
        if isinstance(index, slice):
            return [self[one] for one in range(len(self))[index]]
        made = self._made.get(index)
        if made is None:
            index = range(len(self))[index]  # negative indexes; may raise IndexError
            made = self._made.get(index)
            if made is None:
                made = self._made[index] = self.template.view_of(self.texts[index].strings)
        return made

    def __iter__(self) -> Iterator[Pod]:
        return map(self.__getitem__, range(len(self)))

    @property
    def kind(self) -> Kind:
        """The kind of the objects."""
        return POD

    def object_at(self, index: int) -> DumpedObject:
        """Return the pod at `index` together with its text."""
        return DumpedObject(POD, self[index], self.texts[index], self.template)

    def by_name(self) -> DumpedReplicas:
        """Return the pods sorted by name."""
        number = self.template.number_at(("metadata", "name"))
        texts = self.texts if number is None else self.texts.sorted_by(number)
        if texts is self.texts:
            return self
        found = DumpedReplicas(self.template, texts)
        found.have_own_keys = self.have_own_keys
        return found

    # --- columns ---------------------------------------------------------------------------

    def column(self, *path: str | int) -> Sequence[str]:
        """Return the string at `path` in each pod.

        The path consists of attributes of Pod and list indices. Example: `column("status",
        "conditions", 0, "last_transition_time")`.
        """
        number = self.template.number_at(path)
        if number is not None:
            return self.texts.columns[number]
        found: Any = self[0]
        for step in path:
            found = found[step] if isinstance(step, int) else getattr(found, step)
        return [found] * len(self)

    @property
    def namespace(self) -> str:
        """The namespace that all the pods share."""
        return self[0].metadata.namespace

    @cached_property
    def names(self) -> Sequence[str]:
        """The name of each pod."""
        return self.column("metadata", "name")

    @cached_property
    def uids(self) -> Sequence[str]:
        """The uid of each pod."""
        return self.column("metadata", "uid")

    @cached_property
    def nodes(self) -> Sequence[str]:
        """The name of each pod's node; "" for a pod without a node."""
        return self.column("spec", "node_name")

    @cached_property
    def created(self) -> Sequence[str]:
        """The creationTimestamp of each pod."""
        return self.column("metadata", "creation_timestamp")

    @property
    def storage_keys(self) -> Iterator[Key]:
        """The namespace and name of each pod."""
        return zip(repeat(self.namespace, len(self)), self.names, strict=True)

    @property
    def versions(self) -> Sequence[str]:
        """The resourceVersion of each pod."""
        return self.column("metadata", "resource_version")

    @cached_property
    def start_times(self) -> Sequence[str]:
        """The status.startTime of each pod; "" for a pod that has not started."""
        return self.column("status", "start_time")

    @property
    def have_equal_state(self) -> bool:
        """Whether all or none of the pods have a node, and all or none have a start time."""
        return len({*map(bool, self.nodes)}) == len({*map(bool, self.start_times)}) == 1

    @cached_property
    def share_pod_affinity(self) -> bool:
        """Whether all pods have the same pod affinity; always True.

        Their node affinity may differ.
        """
        return True
