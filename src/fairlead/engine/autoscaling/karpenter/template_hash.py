"""The hash of a NodePool's template, and its copies in the annotations of NodePools and NodeClaims.

A NodeClaim drifts if its hash differs from the hash of its NodePool. Fairlead's hash differs from
upstream's; only the equality of two hashes has a meaning.

upstream: pkg/apis/v1/nodepool.go:Hash
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeVar
from zlib import crc32

from msgspec.structs import replace

from fairlead.api.codec import as_json
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim, NodePool
from fairlead.engine.autoscaling.karpenter.labels import NODE_POOL_HASH, NODE_POOL_HASH_VERSION

_HASH_VERSION: Final = "v3"
_KEYS: Final = (NODE_POOL_HASH, NODE_POOL_HASH_VERSION)

Hashed = TypeVar("Hashed", NodePool, NodeClaim)


def template_hash(pool: NodePool) -> Mapping[str, str]:
    """Return the annotations with the hash of the pool's template.

    The hash does not depend on the template's requirements and resources.
    """
    template: Any = as_json(pool.spec.template)
    for ignored in ("requirements", "resources"):
        template.get("spec", {}).pop(ignored, None)
    # The encoder omits a field only if its value is the same Python object as the default. A
    # decoded "Never" may be another object, so the field is always set here.
    template.setdefault("spec", {})["expireAfter"] = pool.spec.template.spec.expire_after
    text = json.dumps(template, sort_keys=True)
    return {NODE_POOL_HASH: str(crc32(text.encode())), NODE_POOL_HASH_VERSION: _HASH_VERSION}


def hash_of(one: NodePool | NodeClaim) -> Mapping[str, str]:
    """Return the annotations of `one` that contain its hash; {} if it has none."""
    return {key: one.metadata.annotations[key] for key in _KEYS if key in one.metadata.annotations}


def with_hash(one: Hashed, hashes: Mapping[str, str]) -> Hashed:
    """Return a copy of `one` whose hash annotations are replaced by `hashes`."""
    others = {key: text for key, text in one.metadata.annotations.items() if key not in _KEYS}
    return replace(one, metadata=replace(one.metadata, annotations={**others, **hashes}))
