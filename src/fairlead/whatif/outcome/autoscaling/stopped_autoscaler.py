"""Notes that a simulated node autoscaler acts although its own pods do not run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.workload import WorkloadReadiness, WorkloadRef
from fairlead.whatif.snapshot.installed_autoscaler import deployments_of
from fairlead.whatif.snapshot.manifest import Manifest


def stopped_autoscaler_notes(
    autoscaler: str,
    manifests: Iterable[Manifest],
    workloads: Mapping[WorkloadRef, WorkloadReadiness],
) -> Iterator[str]:
    """Yield a note for each Deployment of `autoscaler` that has no ready pod for some time.

    Only Deployments in `manifests` are considered. `autoscaler` is the name of the simulated
    autoscaler, such as `karpenter`. `workloads` are the workloads whose pods change in the
    simulation.
    """
    for one in deployments_of(autoscaler, manifests):
        ref = WorkloadRef(one.ref.kind, one.ref.namespace, one.ref.name)
        readiness = workloads.get(ref)
        if readiness is None:
            continue
        # The Deployment may also be scaled to 0 or deleted.
        is_stopped = readiness.has_ended and readiness.at_end == 0
        if readiness.is_outage or is_stopped:
            lasted = None if is_stopped else readiness.lowest_for
            how_long = "to the end" if lasted is None else f"for {for_readers(lasted)}"
            yield (
                f"{ref} has no ready pod {how_long}, but the simulated {autoscaler} acts in this "
                "time too."
            )
