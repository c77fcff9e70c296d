"""NodeAffinity: nodeSelector, required and preferred node affinity (plugins/nodeaffinity)."""
