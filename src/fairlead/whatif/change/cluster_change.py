"""ClusterChange: the change of a what-if, as a user asks for it; see `change_script`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from os import PathLike
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import mapping
from fairlead.api.selector import SelectorError, parse_selector
from fairlead.api.well_known_label import HOSTNAME
from fairlead.apiserver.kind import NODE, find_kind
from fairlead.whatif.change.descheduled_pod import BY_PRIORITY
from fairlead.whatif.change.kubectl_drain import DELETE_EMPTY_DIR, FORCE, IGNORE_DAEMON_SETS
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.input.given_plugin import plugin_text
from fairlead.whatif.input.option_type import refuse_wrong_types

NO_CHANGE: Final = "No change requested"

# The fields of a ClusterChange that name objects, for which its namespace is the default, and their
# options.
NAMING_OPTIONS: Final = {
    "apply": "--apply",
    "delete": "--delete",
    "set": "--set",
    "set_resources": "--set-resources",
    "apply_vpa": "--apply-vpa",
    "scale": "--scale",
}
_SELECTION: Final = frozenset("=!() ")  # a text without these characters is the name of a node


class ClusterChange(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """The parts of a change, as the user wrote them.

    Most fields contain the values of the option of `fairlead whatif` with the same name, in the
    same form: `scale=("deploy/web=3", "deploy/api=5")`. Raises InputError for a value of another
    type.
    """

    # Manifests, as paths or as objects (mappings).
    apply: tuple[str | PathLike[str] | Mapping[str, Any], ...] = ()
    server_side: bool = False  # whether objects are applied as `kubectl apply --server-side` does
    force_conflicts: bool = False  # with `server_side`: overwrites conflicting fields
    delete: tuple[str, ...] = ()
    priority_class: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    set_resources: tuple[str, ...] = ()
    apply_vpa: bool = False  # whether to set the requests that VerticalPodAutoscalers recommend
    scale: tuple[str, ...] = ()
    # The number of new nodes, which copy the node `like` or have the type `instance_type`.
    add_nodes: int | None = None
    # One name, or several names, separated by commas; these nodes are copied in turn.
    like: str = ""
    instance_type: str = ""
    cordon: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    drain_as_kubectl: bool = False
    ignore_daemonsets: bool = False
    delete_emptydir_data: bool = False
    force: bool = False
    # If set, the drain is a rolling drain: at most that many nodes are drained at a time, and
    # drained nodes return to service. A number, or a percentage of the nodes to drain, such as
    # "5%".
    max_unavailable: int | str | None = None
    failures: Failures = field(default_factory=Failures)
    lasts: str = ""  # the time for which drained and failed nodes stay down, as a duration
    new_config: str | None = None
    new_plugin: tuple[str | type, ...] = ()  # values of --new-plugin, or classes
    new_batch_config: str | None = None
    # `all` or a label selector: these running pods are made pending before both runs.
    reschedule: str = ""
    # The order in which both runs place the pods of `reschedule` (`priority` or `scheduled`).
    reschedule_order: str = BY_PRIORITY
    descheduler: str = ""  # the policy file of a descheduler that runs once
    # The namespace of each manifest and each object name that states none. If "", such manifests
    # get the namespace `default`, and such names are looked up in all namespaces.
    namespace: str = ""

    def __post_init__(self) -> None:
        """Raise InputError if the value of a field does not have the type of its annotation."""
        refuse_wrong_types(self)

    @property
    def without_drain(self) -> ClusterChange:
        """The change without its drain and the settings of the drain."""
        return replace(
            self,
            drain=(),
            drain_as_kubectl=False,
            ignore_daemonsets=False,
            delete_emptydir_data=False,
            force=False,
            max_unavailable=None,
            lasts="",
        )

    @property
    def words(self) -> list[str]:
        """The change as command-line options, for titles and results."""
        parts = {
            "--delete": self.delete,
            "--apply": map(_applied_text, self.apply),
            "--server-side": _given(self.server_side),
            "--force-conflicts": _given(self.force_conflicts),
            "--priority-class": self.priority_class,
            "--set": self.set,
            "--apply-vpa": _given(self.apply_vpa),
            "--set-resources": self.set_resources,
            "--scale": self.scale,
            "--add-nodes": () if self.add_nodes is None else (self.add_nodes,),
            "--like": (self.like,) if self.like else (),
            "--instance-type": (self.instance_type,) if self.instance_type else (),
            "--cordon": self.cordon,
            "--drain": self.drain,
            "--drain-as-kubectl": _given(self.drain_as_kubectl),
            **dict.fromkeys(self.kubectl_flags, ("",)),
            "--max-unavailable": () if self.max_unavailable is None else (self.max_unavailable,),
        }
        after = {
            "--for": (self.lasts,) if self.lasts else (),
            "--new-config": (self.new_config,) if self.new_config else (),
            "--new-plugin": map(plugin_text, self.new_plugin),
            "--new-batch-config": (self.new_batch_config,) if self.new_batch_config else (),
            "--reschedule": (self.reschedule,) if self.reschedule else (),
            "--reschedule-order": _given_order(self.reschedule_order),
            "--descheduler": (self.descheduler,) if self.descheduler else (),
        }
        return [*_worded(parts), *self.failures.words, *_worded(after)]

    @property
    def plan_arguments(self) -> list[str]:
        """The command-line words for those parts of the change that planners have options for."""
        options = {
            "--apply": map(_applied_text, self.apply),
            "--set": self.set,
            "--scale": self.scale,
            "--namespace": (self.namespace,) if self.namespace else (),
        }
        return [word for name, values in options.items() for one in values for word in (name, one)]

    @property
    def beyond_plans(self) -> ClusterChange:
        """The change without the parts that are in `plan_arguments`; objects in `apply` stay."""
        objects = tuple(one for one in self.apply if isinstance(one, Mapping))
        return replace(self, apply=objects, set=(), scale=(), namespace="")

    @property
    def kubectl_flags(self) -> list[str]:
        """The flags of `kubectl drain` that the change sets."""
        flags = {
            IGNORE_DAEMON_SETS: self.ignore_daemonsets,
            DELETE_EMPTY_DIR: self.delete_emptydir_data,
            FORCE: self.force,
        }
        return [flag for flag, is_given in flags.items() if is_given]

    @property
    def changes_scheduler(self) -> bool:
        """Whether the change replaces a scheduler's configuration or adds a scheduler plugin."""
        return bool(self.new_config or self.new_plugin or self.new_batch_config)

    @property
    def node_label(self) -> str:
        """The label key by which the change selects nodes to drain, cordon or delete; "" if none.

        If the change has several selectors, the key is the first key of the first selector. A
        selector that begins with the label kubernetes.io/hostname does not count.
        """
        for text in (*self.drain, *self.cordon, *deleted_nodes(self.delete)):
            with suppress(SelectorError):
                selector = parse_selector(text)
                keys = (*selector.match_labels, *(one.key for one in selector.match_expressions))
                if keys and is_selector(text) and keys[0] != HOSTNAME:
                    return keys[0]
        return ""

    @property
    def title(self) -> str:
        """The change as the first line of an answer: `What if: --drain worker-3`."""
        return f"What if: {' '.join(self.words)}" if self.words else NO_CHANGE


def is_selector(text: str) -> bool:
    """Return whether `text`, which selects nodes, is a label selector; False if it is a name."""
    return bool(_SELECTION & set(text))


def _given_order(order: str) -> tuple[str, ...]:
    return () if order == BY_PRIORITY else (order,)


def _worded(parts: Mapping[str, Iterable[object]]) -> list[str]:
    words = [f"{option} {value}" for option, values in parts.items() for value in values]
    return [word.rstrip() for word in words]


def deleted_nodes(deleted: Iterable[str]) -> Iterator[str]:
    """Yield the node names and node selectors in the values of --delete."""
    for text in deleted:
        kind, _, rest = text.partition("/")
        if find_kind(kind) is NODE:
            yield rest


def _given(flag: bool) -> tuple[str, ...]:  # noqa: FBT001 - an option without a value
    """Return ("",) if the option `flag`, which takes no value, is set; otherwise ()."""
    return ("",) if flag else ()


def _applied_text(given: str | PathLike[str] | Mapping[str, Any]) -> str:
    """Return the text for `given` in `ClusterChange.words`.

    The text is the path of the file, or the kind and name of the object.
    """
    if not isinstance(given, Mapping):
        return str(given)
    name = mapping(given.get("metadata")).get("name", "")
    return f"{given.get('kind', 'object')}/{name}".rstrip("/")
