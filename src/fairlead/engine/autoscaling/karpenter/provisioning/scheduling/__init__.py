"""One scheduling pass: places pods on existing nodes and on NodeClaims that will be created."""
