"""What decides within a session: order, readiness, shares, victims, nodes.

Law: a plugin reads the session and answers; it changes nothing but its own sums.
"""
