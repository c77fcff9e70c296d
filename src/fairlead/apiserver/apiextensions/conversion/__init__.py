"""Conversion of custom resources between the versions of their definition.

`converter.converted` is the only function that changes the version of a custom resource that is
read or written. `conversions.Conversions` calls it for the objects of one request.
"""
