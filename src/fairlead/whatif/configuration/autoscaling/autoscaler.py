"""Selects the node autoscaler of a simulation, from the options and the snapshot.

An autoscaler is imported only if needed, because the import takes as long as a small what-if.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.whatif.input.error import InputError, known_names
from fairlead.whatif.snapshot.installed_autoscaler import (
    has_status,
    installed_flags,
    stopped_notes,
)
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples

if TYPE_CHECKING:
    from fairlead.engine.autoscaling.compose import ClusterAutoscalerConfig
    from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig

OPTION: Final = "--autoscale"
OFF: Final = "off"
AUTO: Final = "auto"
CLUSTER_AUTOSCALER: Final = "cluster-autoscaler"
KARPENTER: Final = "karpenter"
CHOICES: Final = (OFF, AUTO, CLUSTER_AUTOSCALER, KARPENTER)
_KARPENTER_GROUP: Final = "karpenter.sh"
_CHECKED: Final = ("v1", "v1alpha1")  # of NodePools and NodeClaims, and of NodeOverlays


class AutoscaleOptions(Struct, frozen=True):
    """The values of --autoscale, --node-groups, --instance-types and --node-pools.

    The values of the last three options are paths of files. If a path is "" or None, only the
    snapshot is used.
    """

    autoscale: str = OFF
    node_groups: str = ""
    instance_types: str | None = None
    node_pools: str | None = None


NO_AUTOSCALING: Final = AutoscaleOptions()


class Autoscaling(Struct, frozen=True):
    """The configurations of Cluster Autoscaler (`config`) and Karpenter, and notes for the user.

    The configuration of an autoscaler that does not act is None.
    """

    config: ClusterAutoscalerConfig | None = None
    notes: tuple[str, ...] = ()
    karpenter: KarpenterConfig | None = None


_NOT_ACTING: Final = (
    "The dump has a Cluster Autoscaler, which is not simulated; --autoscale cluster-autoscaler "
    "simulates it."
)
KARPENTER_IDLE: Final = (
    "The dump has NodePools of Karpenter, which is not simulated; --autoscale karpenter "
    "simulates it."
)
_ADD_EXPECTED: Final = "--autoscale karpenter adds it."
_ADD_EXPECTED_ELSEWHERE: Final = (
    "fairlead whatif and fairlead fit add it with --autoscale karpenter."
)
ADDS_NODES: Final = "may add nodes for pods that fit on no node"
CHOOSES_NODES: Final = "chooses its nodes by its own rules"
_NOTHING_INSTALLED: Final = (
    "--autoscale auto: the dump has no autoscaler, so none is simulated. If the cloud provider "
    "runs Cluster Autoscaler, --autoscale cluster-autoscaler simulates it."
)


def read_autoscalers(
    source: str,
    initial: Sequence[Manifest],
    options: AutoscaleOptions,
    written: Sequence[Manifest] = (),
) -> Autoscaling:
    """Return the autoscaler that acts in the cluster `initial`, which was read from `source`.

    `options` name the autoscaler. The choice `auto` selects the autoscaler by the first rule that
    matches. First, --node-groups or a Deployment of Cluster Autoscaler selects Cluster Autoscaler.
    Second, NodePools select Karpenter. Third, the ConfigMap with the status of Cluster Autoscaler
    selects Cluster Autoscaler. Otherwise, no autoscaler acts. `written` are the objects that a
    change writes during the run. Raises InputError.
    """
    stopped = stopped_notes(KARPENTER, initial)
    if is_of_karpenter(options, initial):
        if options.node_groups:
            raise InputError("--node-groups", "needs --autoscale cluster-autoscaler")
        from fairlead.whatif.configuration.autoscaling.karpenter.config import (  # noqa: PLC0415
            karpenter_config,
        )
        from fairlead.whatif.configuration.autoscaling.node_dependent import (  # noqa: PLC0415
            with_type_dependents,
        )

        files = options.instance_types, options.node_pools
        config, assumed = karpenter_config(source, initial, *files, written)
        config, copied = with_type_dependents(config, initial)
        other = () if cluster_autoscaler_flags(initial) is None else (_NOT_ACTING,)
        return Autoscaling(None, (*stopped, *other, *assumed, *copied), config)
    if options.node_pools is not None:
        raise InputError("--node-pools", "needs --autoscale karpenter")
    found = read_autoscaling(options, initial)
    if found.config is not None:
        from fairlead.whatif.configuration.autoscaling.scale_down_timer import with_timers  # noqa: PLC0415

        found = replace(found, config=with_timers(found.config, initial))
    idle = (KARPENTER_IDLE, *stopped) if has_node_pools(initial) else ()
    expected = _expected_nodes(initial, _ADD_EXPECTED)
    return Autoscaling(found.config, (*idle, *expected, *found.notes))


def is_of_karpenter(options: AutoscaleOptions, initial: Sequence[Manifest]) -> bool:
    """Return whether `read_autoscalers` selects Karpenter."""
    if options.autoscale != AUTO or options.node_groups:
        return options.autoscale == KARPENTER
    return has_node_pools(initial) and installed_flags(initial) is None


def refuse_invalid_karpenter_objects(
    written: Iterable[Manifest], *, is_simulated: bool = False
) -> None:
    """Raise InputError for an invalid NodePool, NodeClaim or NodeOverlay in `written`.

    The objects are checked even if Karpenter is not simulated, because an API server checks them,
    too. But objects of older versions, which have other fields, are checked only if Karpenter is
    simulated.
    """
    checked = [
        one
        for one in written
        if one.kind.group == _KARPENTER_GROUP and (is_simulated or one.kind.version in _CHECKED)
    ]
    if checked:
        from fairlead.whatif.configuration.autoscaling.karpenter.config import (  # noqa: PLC0415
            refuse_invalid,
        )

        refuse_invalid(checked)


def read_autoscaling(options: AutoscaleOptions, manifests: Sequence[Manifest]) -> Autoscaling:
    """Return the Cluster Autoscaler that `options` and `manifests` configure. Raises InputError."""
    if options.autoscale not in CHOICES:
        hint = known_names(options.autoscale, CHOICES)
        raise InputError(OPTION, f"no autoscaler {options.autoscale!r}; {hint}")
    flags = cluster_autoscaler_flags(manifests)
    stopped = stopped_notes(CLUSTER_AUTOSCALER, manifests)
    if options.autoscale == OFF:
        if options.node_groups:
            raise InputError("--node-groups", "needs --autoscale cluster-autoscaler")
        return Autoscaling(None, () if flags is None else (_NOT_ACTING, *stopped))
    if options.autoscale == AUTO and flags is None and not options.node_groups:
        return Autoscaling(None, (_NOTHING_INSTALLED,))
    from fairlead.whatif.configuration.autoscaling.node_dependent import (  # noqa: PLC0415
        with_group_dependents,
    )
    from fairlead.whatif.configuration.autoscaling.node_group import (  # noqa: PLC0415
        groups_of,
        mixed_size_notes,
        with_prices,
    )

    config, notes = groups_of(options.node_groups, manifests, flags or ())
    config, copied = with_group_dependents(config, manifests)
    notes = (*notes, *mixed_size_notes(config.groups, manifests), *copied)
    config, unpriced = with_prices(config, options.instance_types, manifests)
    return Autoscaling(config, (*stopped, *notes, *unpriced))


def _expected_nodes(manifests: Iterable[Manifest], remedy: str) -> tuple[str, ...]:
    """Return a note about nodes that Karpenter has requested but that do not exist yet.

    The note ends with `remedy`.
    """
    if all(one.kind.group != _KARPENTER_GROUP for one in samples(manifests)):
        return ()
    from fairlead.whatif.snapshot.node_lifecycle.expected_node import expected_nodes_note  # noqa: PLC0415

    return expected_nodes_note(manifests, remedy)


def cluster_autoscaler_flags(manifests: Sequence[Manifest]) -> tuple[str, ...] | None:
    """Return the command line of the Cluster Autoscaler; None if the cluster does not have it.

    If the cloud provider runs the autoscaler, the cluster has only the ConfigMap with its status.
    In this case, the command line is empty. In a cluster with NodePools, this ConfigMap is ignored,
    because it may be the remainder of a removed autoscaler.
    """
    flags = installed_flags(manifests)
    if flags is None and has_status(manifests) and not has_node_pools(manifests):
        return ()
    return flags


def has_node_pools(manifests: Iterable[Manifest]) -> bool:
    """Return whether the cluster has NodePools of Karpenter."""
    return any(
        one.kind.group == _KARPENTER_GROUP and one.kind.kind.startswith("NodePool")
        for one in samples(manifests)
    )


def _installed(manifests: Sequence[Manifest]) -> Iterator[tuple[str, str]]:
    """Yield (words for a note, name) of each autoscaler of the cluster `manifests`."""
    if has_node_pools(manifests):
        yield "NodePools of Karpenter", KARPENTER
    if cluster_autoscaler_flags(manifests) is not None:
        yield "a Cluster Autoscaler", CLUSTER_AUTOSCALER


def unsimulated_in_scenario(manifests: Sequence[Manifest]) -> tuple[str, ...]:
    """Return a note about each of the cluster's autoscalers, none of which is simulated."""
    return tuple(
        f"The cluster has {name}, which is not simulated; settings.autoscale: {autoscaler} "
        "simulates it."
        for name, autoscaler in _installed(manifests)
    )


def unsimulated_in_plan(manifests: Sequence[Manifest], effect: str) -> tuple[str, ...]:
    """Return notes for a command that does not simulate the cluster's autoscalers.

    `manifests` are the objects of the cluster. For each autoscaler, a note says that it is not
    simulated, and what it does in the cluster. `effect` is the text of this second part: ADDS_NODES
    or CHOOSES_NODES. Cluster Autoscaler does not choose nodes, so it gets no note for
    CHOOSES_NODES. Other notes name an autoscaler without a ready pod, and nodes that Karpenter has
    requested but that do not exist yet. Return () if there is nothing to note.
    """
    installed = [
        (name, autoscaler)
        for name, autoscaler in _installed(manifests)
        if effect == ADDS_NODES or autoscaler != CLUSTER_AUTOSCALER
    ]
    idle = (
        f"The dump has {name}, which is not simulated here: it {effect}. To simulate it, use "
        f"fairlead whatif or fairlead fit with --autoscale {autoscaler}."
        for name, autoscaler in installed
    )
    stopped = (note for _, one in installed for note in stopped_notes(one, manifests))
    return *idle, *stopped, *_expected_nodes(manifests, _ADD_EXPECTED_ELSEWHERE)
