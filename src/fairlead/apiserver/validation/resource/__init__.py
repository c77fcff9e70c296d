"""Dynamic resource allocation: slices, classes and claims of devices."""
