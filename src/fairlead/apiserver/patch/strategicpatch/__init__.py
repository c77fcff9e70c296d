"""Strategic merge patch: merges lists by key, directed by the schema.

upstream: staging/src/k8s.io/apimachinery/pkg/util/strategicpatch
"""
