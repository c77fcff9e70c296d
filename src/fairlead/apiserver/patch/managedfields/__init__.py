"""metadata.managedFields and server-side apply.

upstream: sigs.k8s.io/structured-merge-diff, apimachinery/pkg/util/managedfields
"""
