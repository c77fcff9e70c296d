"""Inventory: an index of objects that resolves names and selectors before a run.

`kind/name` is searched for in every namespace and is an error if it is ambiguous;
`kind/namespace/name` is exact. Nodes are selected by name or by label selector (`pool=small`).
Objects of any kind can also be selected by `kind/key=value`.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from fairlead.api.objects import LabelSelector, Pod
from fairlead.api.pods.facts import controller_of
from fairlead.api.selector import SelectorError, parse_selector, selector_matches
from fairlead.api.text.name_list import listed
from fairlead.apiserver.defaulting.definition import DefinitionNames
from fairlead.apiserver.kind import (
    CRON_JOB,
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    JOB,
    KINDS,
    NODE,
    POD,
    REPLICA_SET,
    Kind,
    find_kind,
    kind_of,
    reference_kind,
)
from fairlead.whatif.input.error import InputError, known_names, nearest_names
from fairlead.whatif.snapshot.manifest import Manifest, ReplicaManifests, entries_of
from fairlead.whatif.snapshot.owner_name import owner_names
from fairlead.whatif.snapshot.served_kind import is_custom

_NEAREST_MAX: Final = 3
_LEADING_ZEROS: Final = re.compile(r"(?<!\d)0+(?=\d)")
_NAMED_MAX: Final = 10
_NO_SUCH_KIND: Final = "no built-in kind has this name, and the dump has no such custom resource"
_COMMA_HINT: Final = "; commas combine labels: to select several {}, repeat the option"
_SELECTOR_SIGNS: Final = frozenset("=!<>(), ")
_ALL: Final = ("*", "all")  # what users try
_NOT_IN_NAMESPACES: Final = _SELECTOR_SIGNS | {"."}
# The kinds between a workload and its pods.
_BETWEEN: Final[Mapping[Kind, tuple[Kind, ...]]] = {DEPLOYMENT: (REPLICA_SET,), CRON_JOB: (JOB,)}


class DefinitionSpec(Struct, frozen=True):
    """The part of the spec of a CustomResourceDefinition that names a kind."""

    group: str = ""
    names: DefinitionNames = DefinitionNames()


class _Definition(Struct, frozen=True):
    spec: DefinitionSpec = DefinitionSpec()


class Inventory:
    """The objects that exist when a change or an event takes effect."""

    def __init__(
        self,
        manifests: Iterable[Manifest] = (),
        source: str = "the cluster",
        unreadable: Iterable[str] = (),
    ) -> None:
        """Start with the objects in `manifests`; `source` is their origin in messages.

        `unreadable` are the resources that could not be read, such as `jobs.batch`.
        """
        self._source = source
        self._unreadable = frozenset(unreadable)
        self._by_resource: dict[str, dict[tuple[str, str], Manifest]] = {}
        self._kinds: dict[str, Kind] = {}
        self._new_nodes: set[str] = set()
        self._deleted: set[tuple[str, str]] = set()  # resource and name
        # Pods in `ReplicaManifests`, and all pods that follow the first of them. These pods move to
        # `_by_resource` when a pod is first looked up. Most changes look up no pod.
        self._pods: list[Manifest | ReplicaManifests] = []
        for entry in entries_of(manifests):
            if isinstance(entry, Manifest) and not (self._pods and entry.kind is POD):
                self._put(entry)
                continue
            self._kinds.setdefault(POD.resource, POD)
            self._by_resource.setdefault(POD.resource, {})
            self._pods.append(entry)

    def add(self, manifest: Manifest) -> None:
        """Add an object that exists or will be created."""
        self._objects(manifest.kind)
        self._put(manifest)

    def _put(self, manifest: Manifest) -> None:
        kind, ref = manifest.kind, manifest.ref
        self._kinds.setdefault(kind.resource, kind)
        self._by_resource.setdefault(kind.resource, {})[(ref.namespace, ref.name)] = manifest

    def add_new_node(self, node: Manifest) -> None:
        """Add a node that the change creates; label selectors for nodes do not match it.

        So one change can replace a pool with copies of its nodes, which have the same labels:
        `--add-nodes 6 --like old-1 --drain pool=old` drains only the old nodes.
        """
        self.add(node)
        self._new_nodes.add(node.ref.name)

    def _objects(self, kind: Kind) -> dict[tuple[str, str], Manifest]:
        """Return the objects of `kind` by namespace and name, in the order of addition."""
        if kind is POD and self._pods:
            pods, self._pods = self._pods, []
            for entry in pods:
                for one in entry if isinstance(entry, ReplicaManifests) else (entry,):
                    self._put(one)
        return self._by_resource.get(kind.resource, {})

    def remove(self, manifest: Manifest) -> None:
        """Remove an object that will be deleted, so that later lookups do not find it."""
        ref = manifest.ref
        del self._objects(manifest.kind)[(ref.namespace, ref.name)]
        self._deleted.add((manifest.kind.resource, ref.name))

    def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        """Return the object with this kind, namespace and name; None if it does not exist."""
        return self._objects(kind).get((namespace, name))

    def of_kind(self, kind: Kind) -> list[Manifest]:
        """Return all objects of `kind` in the order of addition."""
        return list(self._objects(kind).values())

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of the objects, in the order of addition."""
        return list(self._kinds.values())

    def pods_on(self, nodes: Collection[str]) -> Iterator[Pod]:
        """Yield the pods on `nodes` in the order of addition. Raises InputError for a bad pod."""
        filed = self._by_resource.get(POD.resource, {}).values()
        for entry in (*filed, *self._pods):
            if isinstance(entry, ReplicaManifests):
                on_nodes = enumerate(entry.replicas.nodes)
                yield from (entry.replicas[index] for index, node in on_nodes if node in nodes)
            elif (pod := entry.pod).spec.node_name in nodes:
                yield pod

    def pods_of(self, *owners: Manifest) -> Iterator[Pod]:
        """Yield the pods whose controller is one of `owners`; uids are not compared.

        Raises InputError for a pod that is not valid.
        """
        by_name: dict[tuple[str, str], list[Manifest]] = defaultdict(list)
        for owner in owners:
            by_name[owner.ref.namespace, owner.ref.name].append(owner)
        filed = self._by_resource.get(POD.resource, {}).values()
        for entry in (*filed, *self._pods):
            pods = entry.replicas if isinstance(entry, ReplicaManifests) else (entry.pod,)
            meta = pods[0].metadata
            reference = controller_of(meta)
            if reference is not None and any(
                owner.is_named_by(reference.kind, reference.api_version, reference.name)
                for owner in by_name.get((meta.namespace, reference.name), ())
            ):
                yield from pods

    def absence(self, kind: Kind) -> str:
        """Return why there are no objects of `kind`, such as "the cluster has no Deployment"."""
        if kind.resource in self._unreadable:
            return f"no {kind.plural} could be read"
        return f"{self._source} has no {kind.kind}"

    def in_namespace(self, namespace: str) -> list[Manifest]:
        """Return all objects in `namespace`, grouped by kind, in the order of addition."""
        self._objects(POD)
        return [
            manifest
            for objects in self._by_resource.values()
            for (object_namespace, _), manifest in objects.items()
            if object_namespace == namespace
        ]

    def find(
        self, source: str, text: str, namespace: str = "", expected: Sequence[Kind] = ()
    ) -> Manifest:
        """Return the object that `text` (`kind/name` or `kind/namespace/name`) names.

        If `namespace` is not empty, `kind/name` is searched for only there. `expected` are the
        kinds to suggest if the kind is unknown. `source` is the option or file that error messages
        name. Raises InputError for a malformed `text`, an unknown kind, a missing object or an
        ambiguous name. Also raises InputError if the name of a cluster-scoped object contains a
        namespace, or if `text` contains another namespace than `namespace`.
        """
        found = self.look_up(source, text, namespace)
        if found is None:
            raise InputError(source, self._problem(text, namespace, expected))
        return found

    def look_up(self, source: str, text: str, namespace: str = "") -> Manifest | None:
        """Return the object that `text` names, like `find`; None if `text` names no object.

        Raises InputError for an ambiguous name, for a namespace in the name of a cluster-scoped
        object, and if `text` contains another namespace than `namespace`.
        """
        parts = name_parts(text, namespace)
        kind = None if parts is None else self._kind(*parts)
        if parts is None or kind is None:
            return None
        _, stated, name = parts
        if kind.namespaced:
            _require_namespace(source, text, stated, namespace)
        namespace = stated
        found = [
            manifest
            for (object_namespace, object_name), manifest in self._objects(kind).items()
            if object_name == name and (not kind.namespaced or namespace in ("", object_namespace))
        ]
        if len(found) > 1:
            where = ", ".join(sorted(manifest.ref.namespace for manifest in found))
            raise InputError(source, f"{text} is in several namespaces ({where}); name one of them")
        if found and not kind.namespaced and text.count("/") > 1:
            short = f"{text.partition('/')[0]}/{name}"
            problem = f"{text!r}: a {kind.kind} is in no namespace; write {short}"
            raise InputError(source, problem)
        return found[0] if found else None

    def qualified(self, source: str, text: str, namespace: str) -> str:
        """Return `text`, which may name an object, with `namespace` in front of the object's name.

        Return `text` itself in four cases: `text` names no object, its kind is cluster-scoped or
        unknown, it already contains a namespace, or `namespace` is "". Raises InputError if `text`
        contains another namespace than `namespace`.
        """
        parts = name_parts(text, namespace) if namespace else None
        kind = None if parts is None else self._kind(*parts)
        if parts is None or kind is None or not kind.namespaced:
            return text
        _require_namespace(source, text, parts[1], namespace)
        return "/".join(parts)

    def _problem(self, text: str, namespace: str, expected: Sequence[Kind]) -> str:
        """Return why `look_up` finds no object; the parameters are those of `find`."""
        parts = name_parts(text, namespace)
        if parts is None:
            others = self._namesakes(namespace, text, expected)
            hint = f"; did you mean {', '.join(others)}?" if others else ""
            hint = hint or self._of_kind_alone(text, namespace, expected)
            return f"{text!r} is not KIND/NAME or KIND/NAMESPACE/NAME{hint}"
        kind = self._kind(*parts)
        if kind is None:
            return f"unknown kind {parts[0]!r}; {self._suggestion(text, expected)}"
        _, namespace, name = parts
        if not kind.namespaced:
            namespace = ""
        full_name = f"{namespace}/{name}" if namespace else name
        if not self._objects(kind) and (kind.resource, name) not in self._deleted:
            pod = self._pod_of_absent(kind, namespace, name)
            if pod is not None:
                owner = f"{kind.kind} {pod.metadata.namespace}/{name}"
                return f"the dump lacks {owner}, the owner of pod/{pod.key}{self.remedy(kind)}"
        others = self._namesakes(namespace, name, expected, kind.kind)
        return f"there is no {kind.kind} {full_name}{self._similar(kind, name, others)}"

    def _of_kind_alone(self, text: str, namespace: str, expected: Sequence[Kind]) -> str:
        """Return a hint with a few objects of the kind `text`; "" if `text` is no kind.

        Also return "" if only other built-in kinds are `expected`. If `namespace` is not empty,
        only objects in this namespace are named.
        """
        kind = self._kind(text)
        if kind is None or (expected and kind not in expected and not is_custom(kind.api_version)):
            return ""
        found = sorted(
            one.ref.key
            for one in self.of_kind(kind)
            if not (namespace and kind.namespaced) or one.ref.namespace == namespace
        )
        if not found:
            return f" ({self.absence(kind)})"
        names = [f"{text}/{key}" for key in found]
        return f"; name one of them: {listed(names)}" if len(names) > 1 else f"; try {names[0]}"

    def _pod_of_absent(self, kind: Kind, namespace: str, name: str) -> Pod | None:
        """Return the first pod whose owner references or labels name a missing workload.

        If `namespace` is "", all namespaces are searched. Return None if there is no such pod.
        Raises InputError for a pod that is not valid.
        """
        wanted = kind.kind.lower(), name
        pods = (one.pod for one in self.of_kind(POD) if namespace in ("", one.ref.namespace))
        for pod in pods:
            controller = controller_of(pod.metadata)
            # A custom resource may have a kind with the name of a built-in kind.
            if controller is None or is_custom(controller.api_version) != kind.is_custom:
                continue
            if wanted in owner_names(pod):
                return pod
        return None

    def remedy(self, kind: Kind) -> str:
        """Return how to add the objects of `kind`, of which there are none."""
        if kind.resource in self._unreadable:
            return f" ({self.absence(kind)})"
        plurals = ",".join(one.plural for one in (kind, *_BETWEEN.get(kind, ())))
        return (
            f" (the dump has no {kind.plural}); read the cluster with fairlead snapshot, or put "
            f"the dump and the output of kubectl get -A -o json {plurals} into one folder"
        )

    def select(self, source: str, text: str, namespace: str = "") -> list[Manifest]:
        """Return the objects that `text` selects by name or by label selector.

        For a name, the result contains the one object that `find` returns. A selector has the form
        `kind/key=value` or `kind/namespace/key=value`. The first form selects only objects in
        `namespace`, or objects in all namespaces if `namespace` is "". Raises InputError if no
        object matches, if the kind is unknown, if `text` is malformed, or if `text` contains
        another namespace than `namespace`. The message names `source`.
        """
        name, _, rest = text.partition("/")
        if not _SELECTOR_SIGNS & set(rest):
            return [self.find(source, text, namespace)]
        kind = self._kind(name)
        if kind is None:
            raise InputError(source, f"unknown kind {name!r}; {self._suggestion(text, ())}")
        before, slash, after = rest.partition("/")
        if kind.namespaced and slash and not _NOT_IN_NAMESPACES & set(before):
            _require_namespace(source, text, before, namespace)
            namespace, rest = before, after
        if not rest.strip():  # This would select every object; it is usually an unset variable.
            raise InputError(source, f"{text!r} has an empty selector")
        try:
            selector = parse_selector(rest)
        except SelectorError as cause:
            raise InputError(source, f"{rest!r} is not a selector: {cause}") from None
        inside = [
            manifest
            for (object_namespace, _), manifest in self._objects(kind).items()
            if not kind.namespaced or namespace in ("", object_namespace)
        ]
        found = [one for one in inside if selector_matches(selector, one.labels)]
        if not found:
            hint = _COMMA_HINT.format(kind.plural) if "," in rest else ""
            hint += _label_hint(selector, [one.labels for one in inside])
            if kind.resource in self._unreadable:
                hint = f" ({self.absence(kind)}){hint}"
            raise InputError(source, f"no {kind.kind} matches {rest}{hint}")
        return found

    def nodes(self, source: str, text: str) -> list[str]:
        """Return the names of the nodes that match `text`, which is a name or a selector.

        A selector matches only nodes that exist before the change. The names are sorted, as the API
        server sorts a list of nodes, because a drain handles the nodes in this order. Raises
        InputError, with `source` in its message, if no node matches or `text` is malformed.
        """
        nodes = self._objects(NODE)
        if not _SELECTOR_SIGNS & set(text):
            if ("", text) not in nodes:
                values = [one.labels[text] for one in nodes.values() if text in one.labels]
                hint = self._similar(NODE, text)
                if values:
                    hint = f"; to select nodes by this label, write KEY=VALUE: {text}={min(values)}"
                if text in _ALL:
                    hint = "; to select all nodes, name a label that all of them have, such as "
                    hint += "kubernetes.io/os=linux"
                raise InputError(source, f"there is no Node {text}{hint}")
            return [text]
        if not text.strip():  # This would select every node; it is usually an unset variable.
            raise InputError(source, "is empty")
        try:
            selector = parse_selector(text)
        except SelectorError as cause:
            raise InputError(
                source, f"{text!r} is neither a node name nor a selector: {cause}"
            ) from None
        found = [
            manifest.ref.name
            for manifest in nodes.values()
            if selector_matches(selector, manifest.labels)
        ]
        chosen = [name for name in found if name not in self._new_nodes]
        if not chosen and any(resource == NODE.resource for resource, _ in self._deleted):
            which = "no node that remains" if not found else "only nodes that the change creates"
            raise InputError(source, f"{text} matches {which}; deletions take effect first")
        if found and not chosen:
            problem = f"{text} matches only nodes that the change creates; name them instead"
            raise InputError(source, problem)
        if not chosen:
            hint = _COMMA_HINT.format(NODE.plural) if "," in text else ""
            hint += _label_hint(selector, [one.labels for one in nodes.values()])
            raise InputError(source, f"no node matches {text}{hint}")
        return sorted(chosen)

    def _kind(self, name: str, *of_object: str) -> Kind | None:
        """Return the kind called `name`, as kubectl names kinds; None if there is no such kind.

        If a built-in kind that every cluster serves has the name, the result is this kind. Several
        kinds of custom resources may have the name. `of_object`, if given, is a namespace ("" for
        any) and the name of an object. The result is then the first of these kinds of which the
        inventory has this object. If there is no such object, or `of_object` is not given, the
        result is the first kind with the name.
        """
        known = find_kind(name)
        if known is not None and not (known.is_custom or known.feature_gate):
            return known
        found = [kind for kind in self._kinds.values() if name.lower() in _names(kind)]
        found = found or self._defined_as(name.lower())
        for kind in found if of_object else ():
            namespace, object_name = of_object
            keys = self._objects(kind)
            if any(object_name == key[1] and namespace in ("", key[0]) for key in keys):
                return kind
        return found[0] if found else known

    def _defined_as(self, name: str) -> list[Kind]:
        """Return the kinds to which a CustomResourceDefinition of the inventory gives `name`."""
        found = []
        for _, spec in self.definitions():
            names = spec.names
            if name.removesuffix(f".{spec.group}") in (
                names.plural, names.singular, *names.short_names
            ):  # fmt: skip
                kinds = self._kinds.values()
                found += [one for one in kinds if (one.group, one.kind) == (spec.group, names.kind)]
        return found

    def definitions(self) -> Iterator[tuple[Manifest, DefinitionSpec]]:
        """Yield each CustomResourceDefinition of the inventory with the names in its spec.

        Raises InputError for a name that is no text.
        """
        for one in self.of_kind(CUSTOM_RESOURCE_DEFINITION):
            yield one, one.as_view(_Definition).spec

    def _suggestion(self, text: str, expected: Sequence[Kind]) -> str:
        """Return a suggestion for what `text`, whose kind is unknown, may mean.

        If `text` is NAMESPACE/NAME or NAME, the suggestion is KIND/NAMESPACE/NAME or KIND/NAME.
        """
        first, _, rest = text.partition("/")
        # A custom resource that controls pods usually controls several.
        owned = self._owned_by(first, rest, expected or [k for k in self.kinds if k is not POD])
        if owned:
            return f"did you mean {owned}, which {text} owns?"
        for kind in expected or self._kinds.values():
            if self.get(kind, first, rest) is not None:
                return f"did you mean {reference_kind(kind).lower()}/{text}?"
        if not expected:
            kinds = sorted({kind.kind.lower() for kind in (*KINDS, *self.kinds)})
            nearest = difflib.get_close_matches(first, kinds, n=1)
            return f"did you mean {nearest[0]}?" if nearest else _NO_SUCH_KIND
        return known_names(first, (kind.kind.lower() for kind in expected))

    def _owned_by(self, kind_name: str, key: str, expected: Sequence[Kind]) -> str:
        """Return `kind/namespace/name` of an object that a missing object controls, or "".

        The missing object is of the kind called `kind_name`, and `key` is NAME or NAMESPACE/NAME.
        Dumps lack most custom resources, such as the DeploymentConfigs of OpenShift, but owner
        references contain their names. Only controlled objects of the kinds `expected` count. If
        there are several such objects, the object with the most replicas is returned.
        """
        namespace, _, name = key.rpartition("/")
        found = []
        for one in (each for kind in expected for each in self._objects(kind).values()):
            owner = one.controller if namespace in ("", one.ref.namespace) else None
            if owner is not None and owner.name == name:
                kind = kind_of({"apiVersion": owner.api_version, "kind": owner.kind})
                if kind_name.lower() in _names(kind):
                    found.append(one)
        most = max(found, key=lambda one: (_replicas(one), one.ref.key), default=None)
        return "" if most is None else f"{most.kind.kind.lower()}/{most.ref.key}"

    def _namesakes(
        self, namespace: str, name: str, expected: Sequence[Kind], also: str = ""
    ) -> list[str]:
        """Return a few objects called `name`, in the form KIND/NAMESPACE/NAME or KIND/NAME.

        `expected` limits the kinds; kinds called `also` in any group are searched, too. If
        `namespace` is "", all namespaces are searched.
        """
        kinds = [
            *(expected or self._kinds.values()),
            *(kind for kind in self._kinds.values() if expected and kind.kind == also),
        ]
        found = (
            f"{reference_kind(kind).lower()}/{object_namespace and f'{object_namespace}/'}{name}"
            for kind in dict.fromkeys(kinds)
            for object_namespace, object_name in self._objects(kind)
            if object_name == name and namespace in ("", object_namespace)
        )
        return list(islice(found, _NEAREST_MAX))

    def _similar(self, kind: Kind, name: str, others: Sequence[str] = ()) -> str:
        """Return a hint with the most similar names, and with all names if they are few.

        `others` are the objects of other kinds that are called `name`. If there are such objects,
        the hint suggests only these objects.
        """
        if (kind.resource, name) in self._deleted:
            return "; it is deleted first"
        objects = self.of_kind(kind)
        meant = f"; did you mean {', '.join(others)}?" if others else ""
        if not objects:
            return f" ({self.absence(kind)}){meant}"
        if others:
            return meant
        known = sorted(manifest.ref.key for manifest in objects)
        names = sorted({manifest.ref.name for manifest in objects})
        similar = nearest_names(name, names, _NEAREST_MAX)
        same = [one for one in names if _without_leading_zeros(one) == _without_leading_zeros(name)]
        longer = [one for one in names if one.startswith((f"{name}-", f"{name}."))]
        nearest = dict.fromkeys((*same, *longer, *similar))
        keys = [key for near in nearest for key in known if key.rpartition("/")[2] == near]
        hint = f"did you mean {', '.join(keys[:_NEAREST_MAX])}? " if keys else ""
        if len(objects) > _NAMED_MAX:
            return f"; {hint}there are {len(objects):,} {kind.plural}"
        return f"; {hint}known: {', '.join(known)}"


def _label_hint(selector: LabelSelector, labels: Sequence[Mapping[str, str]]) -> str:
    """Return a hint about the first `key=value` of `selector` that is not a label of any object.

    `labels` are the labels of each object. The hint names the most similar value, or the most
    similar label if no object has the label `key`. Returns "" if every `key=value` is a label of an
    object, or if no object has labels.
    """
    keys = {key for own in labels for key in own}
    for one in selector.match_expressions:
        values = {own[one.key] for own in labels if one.key in own}
        if one.operator != "In" or not keys or not values.isdisjoint(one.values):
            continue
        if not values:
            return f"; there is no label {one.key}; {known_names(one.key, keys)}"
        return f"; {known_names(f'{one.key}={one.values[0]}', (f'{one.key}={v}' for v in values))}"
    return ""


def name_parts(text: str, namespace: str) -> tuple[str, str, str] | None:
    """Return (kind, namespace, name) of `text`; None if it has another form.

    If `text` contains no namespace, `namespace` is returned as the namespace.
    """
    match text.split("/"):
        case [kind, name] if kind and name:
            return kind, namespace, name
        case [kind, namespace, name] if kind and namespace and name:
            return kind, namespace, name
        case _:
            return None


def _require_namespace(source: str, text: str, found: str, namespace: str) -> None:
    """Raise InputError if `found`, the namespace in `text`, contradicts `namespace`.

    `namespace` is the argument of the option --namespace, or "". kubectl refuses a file of another
    namespace too (cli-runtime/pkg/resource/visitor.go: RequireNamespace).
    """
    if namespace and found != namespace:
        problem = f"{found} is not the namespace of --namespace ({namespace})"
        raise InputError(source, f"{text}: {problem}")


def _replicas(one: Manifest) -> int:
    spec = one.value.get("spec")
    found = spec.get("replicas", 1) if isinstance(spec, dict) else 1
    return found if isinstance(found, int) else 1


def _names(kind: Kind) -> Iterator[str]:
    """Yield, in lower case, the names that kubectl accepts for `kind`."""
    for name in (kind.kind.lower(), kind.plural, *kind.short_names):
        yield name
        yield f"{name}.{kind.group}"
        yield f"{name}.{kind.version}.{kind.group}"


def _without_leading_zeros(name: str) -> str:
    """Return `name` in lower case with each number in its shortest form: node-00001 as node-1."""
    return _LEADING_ZEROS.sub("", name.lower())
