"""The batch plugins: order, readiness, shares, victims, nodes.

Law: a plugin reads the session and returns values; it changes only its own sums.
"""
