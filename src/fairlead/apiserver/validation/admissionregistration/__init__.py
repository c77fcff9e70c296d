"""Webhook configurations and admission policies, whose CEL expressions are compiled and typed."""
