"""What a user may do: RBAC and the node authorizer."""
