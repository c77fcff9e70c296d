"""Lookups of claims, volumes, storage classes and CSI drivers, shared by the volume plugins."""
