"""EditedFields: the fields that a change sets.

A change that sets a field twice is refused, because only the last value would have an effect:

    --set deploy/web:spec.replicas=5 --scale deploy/web=3
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from fairlead.engine.core.command import ObjectRef
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest

Place = tuple[str | int, ...]  # the steps of a path; a step is a key or an index


class EditedFields:
    """The fields that the options of a change have set so far."""

    def __init__(self) -> None:
        self._places: dict[ObjectRef, dict[Place, str]] = defaultdict(dict)

    def add(self, option: str, target: Manifest, places: Mapping[Place, str]) -> None:
        """Add the fields of `target` that `option` sets.

        `places` maps the path of each field to its name in error messages. Raises InputError if an
        earlier edit of `target` set one of these fields or a part of it. After an edit of a whole
        object or list, a later edit may set a part of this object or list.
        """
        self.refuse_replaced(option, target, places)
        self._places[target.ref].update(places)

    def refuse_replaced(self, option: str, target: Manifest, places: Mapping[Place, str]) -> None:
        """Raise InputError if an earlier option set a field in `places`, or a part of such a field.

        `places` are the paths of the fields of `target` that `option` sets, as in `add`.
        """
        for place, field in places.items():
            for earlier, name in self._places[target.ref].items():
                if earlier[: len(place)] != place:
                    continue
                is_same = len(earlier) == len(place)
                problem = "is given twice" if is_same else f"replaces the value given for {name}"
                if name.startswith("--"):
                    problem = f"replaces a value that {name} sets"
                raise InputError(option, problem, object_name=target.title, field=field)
