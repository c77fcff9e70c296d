"""Conversion of custom resources between the versions of their definition.

`converter.converted` is the only function that sends custom resources to a conversion webhook.
`conversions.Conversions` calls it for the objects of one request.
"""
