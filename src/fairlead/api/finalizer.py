"""The finalizer of Karpenter's Nodes and NodeClaims.

upstream: sigs.k8s.io/karpenter pkg/apis/v1/labels.go:TerminationFinalizer
"""

from __future__ import annotations

from typing import Final

TERMINATION: Final = "karpenter.sh/termination"
