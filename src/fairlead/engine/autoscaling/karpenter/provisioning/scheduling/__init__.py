"""One scheduling pass: pods are placed on existing nodes and on NodeClaims that it opens."""
