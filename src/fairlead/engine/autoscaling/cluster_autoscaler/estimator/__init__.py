"""How many new nodes of a group would take the pending pods."""
