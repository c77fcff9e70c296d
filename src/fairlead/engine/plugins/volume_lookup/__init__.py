"""Finds claims, volumes, storage classes and CSI drivers for all volume plugins."""
