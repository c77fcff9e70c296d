"""Domains: which topology domain each row belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Domains:
    """`ids[row]` is the row's domain, below `size`; -1 (ABSENT) where the row is in none."""

    ids: Ids
    size: int
