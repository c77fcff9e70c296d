"""Names for new objects: upstream's form and alphabet, but reproducible.

Upstream draws suffixes at random; here they are a pure hash of who asks and how often it asked
before, so that the same run gives the same names on every machine.

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
    """`base-xxxxx`, where the suffix depends on `seed` and `serial` alone."""
    prefix = f"{base}-"[: GENERATED_LENGTH_MAX - SUFFIX_LENGTH]
    return prefix + _letters(f"{seed}/{serial}".encode(), SUFFIX_LENGTH)


def template_hash(template: Any, collisions: int) -> str:
    """What tells this pod template from others; another one for each count of `collisions`.

    Not upstream's value (pkg/controller/controller_utils.go:ComputeHash hashes Go's memory
    layout), but of its form and with its purpose.
    """
    content = msgspec.json.encode(template, order="sorted")
    return _letters(content + b"/%d" % collisions, TEMPLATE_HASH_LENGTH)


def _letters(content: bytes, length: int) -> str:
    number = int.from_bytes(hashlib.sha256(content).digest(), "big")
    letters = []
    for _ in range(length):
        number, place = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[place])
    return "".join(letters)
