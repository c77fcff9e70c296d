"""Webhook configurations and admission policies.

Their CEL expressions are compiled and type-checked.
"""
