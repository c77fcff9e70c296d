"""Fairlead: ask your cluster "what if?".

A deterministic Kubernetes simulator in virtual time, behind `fairlead simulate`, `fairlead whatif`,
`fairlead explain` and others. See ARCHITECTURE.md for the layers and the six functions to read
first.
"""

__version__ = "0.3.0"
