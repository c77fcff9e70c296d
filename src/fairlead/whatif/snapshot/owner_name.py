"""Names of the owners of pods, also of owners that the dump lacks.

ReplicaSet web-6d4cf56db6, and the pod's label pod-template-hash: 6d4cf56db6   Deployment web
the same, with the label rollouts-pod-template-hash of Argo Rollouts           Rollout web
Job backup-29384720                                                           CronJob backup
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import controller_of
from fairlead.engine.workloads.pod_control.pod_template import TEMPLATE_HASH_LABEL
from fairlead.whatif.snapshot.served_kind import full_kind

# upstream: argo-rollouts, pkg/apis/rollouts/v1alpha1/types.go: DefaultRolloutUniqueLabelKey
_ROLLOUT_HASH_LABEL: Final = "rollouts-pod-template-hash"
OWNER_BY_HASH: Final = ((TEMPLATE_HASH_LABEL, "Deployment"), (_ROLLOUT_HASH_LABEL, "Rollout"))
"""The kind of the owner of a pod's ReplicaSet, by the pod's label with the template hash.

The name of the ReplicaSet ends with this hash.
"""
# upstream: pkg/controller/cronjob/utils.go:getJobName; the suffix is the scheduled time in minutes
# since 1970. The minutes of all times since August 2015 are larger than a date such as 20261120. So
# a Job with a date in its name does not look like a Job of a CronJob.
_CRON_JOB: Final = re.compile(r"(.+)-(?:2[4-9]|[3-9][0-9])[0-9]{6}")


def owner_of_controller(
    kind: str, name: str, digests: Sequence[str | None]
) -> tuple[str, str] | None:
    """Return (kind, name) of the owner of a pod's controller; None if `name` shows no owner.

    `kind` (a result of `full_kind`) and `name` identify the controller. `digests` are the values of
    the pod's labels in `OWNER_BY_HASH`; a value is None if the label is missing.
    """
    if kind.partition(".")[0] == "ReplicaSet":
        for (_, above), digest in zip(OWNER_BY_HASH, digests, strict=True):
            if digest and name.endswith(f"-{digest}"):
                return above, name.removesuffix(f"-{digest}")
    if kind == "Job" and (found := _CRON_JOB.fullmatch(name)):
        return "CronJob", found[1]
    return None


def owner_names(pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield (kind, name) of the controller of `pod`, and of the owner of this controller.

    The kinds are in lower case.
    """
    controller = controller_of(pod.metadata)
    if controller is None:
        return
    yield controller.kind.lower(), controller.name
    digests = [pod.metadata.labels.get(label) for label, _ in OWNER_BY_HASH]
    kind = full_kind(controller.kind, controller.api_version)
    if above := owner_of_controller(kind, controller.name, digests):
        yield above[0].lower(), above[1]
