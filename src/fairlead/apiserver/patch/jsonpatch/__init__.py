"""JSON patch (RFC 6902), as upstream's library applies it.

upstream: gopkg.in/evanphx/json-patch.v4
"""
