"""Validates the kinds of dynamic resource allocation: slices, classes and claims of devices."""
