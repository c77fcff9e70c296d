"""Domains: the topology domain of each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Domains:
    """`ids[row]` is the row's domain, less than `size`; -1 (ABSENT) if the row is in no domain."""

    ids: Ids
    size: int
