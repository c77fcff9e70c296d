"""Controllers that delete dependents and the content of namespaces, or that delay deletions."""
