"""Reproduces how Go reads JSON: syntax errors, type names, base64, timestamps, internal types.

Decoding errors of the API server quote Go types and positions. Clients can see these errors, so
they are reproduced to the byte.

upstream: encoding/json, time, encoding/base64
"""
