"""The finalizers that controllers remove.

    TERMINATION             Karpenter, from Nodes and NodeClaims
    JOB_TRACKING            the Job controller, from the pods of Jobs
    FOREGROUND and ORPHAN   the garbage collector, from owners that are being deleted

upstream: sigs.k8s.io/karpenter pkg/apis/v1/labels.go:TerminationFinalizer,
staging/src/k8s.io/api/batch/v1/types.go:JobTrackingFinalizer,
apimachinery/pkg/apis/meta/v1/types.go:FinalizerDeleteDependents, FinalizerOrphanDependents
"""

from __future__ import annotations

from typing import Final

TERMINATION: Final = "karpenter.sh/termination"
JOB_TRACKING: Final = "batch.kubernetes.io/job-tracking"
FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
