"""The batch plugins: order, readiness, shares, victims, nodes.

Law: a plugin reads the session and answers; it changes only its own sums.
"""
