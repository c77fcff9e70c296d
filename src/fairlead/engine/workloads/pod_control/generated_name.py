"""Generated names in upstream's form and alphabet, but reproducible.

Upstream draws suffixes at random. Here they are a hash of the owner and a serial number, so the
same run yields the same names on every machine.

upstream: staging/src/k8s.io/apiserver/pkg/storage/names/generate.go,
apimachinery/pkg/util/rand/rand.go:SafeEncodeString
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5
GENERATED_LENGTH_MAX: Final = 63
TEMPLATE_HASH_LENGTH: Final = 10


def generated_name(base: str, seed: str, serial: int) -> str:
    """`base-xxxxx`, where the suffix depends only on `seed` and `serial`."""
    prefix = f"{base}-"[: GENERATED_LENGTH_MAX - SUFFIX_LENGTH]
    return prefix + _letters(f"{seed}/{serial}".encode(), SUFFIX_LENGTH)


def template_hash(template: Any, collisions: int) -> str:
    """The pod-template-hash of a template; `collisions` changes it after a name collision.

    The value differs from upstream's (pkg/controller/controller_utils.go:ComputeHash hashes Go's
    memory layout); form and purpose are the same.
    """
    content = msgspec.json.encode(template, order="sorted")
    return _letters(content + b"/%d" % collisions, TEMPLATE_HASH_LENGTH)


def _letters(content: bytes, length: int) -> str:
    number = int.from_bytes(hashlib.sha256(content).digest(), "big")
    letters = []
    for _ in range(length):
        number, index = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[index])
    return "".join(letters)
