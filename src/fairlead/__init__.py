"""Fairlead: ask your cluster "what if?".

A deterministic, time-warping Kubernetes scheduler: `fairlead simulate`, `fairlead whatif`,
`fairlead explain`. See ARCHITECTURE.md for the layers and the six functions to read first.
"""

__version__ = "0.1.0"
