"""Validates webhook configurations and admission policies, including their CEL expressions."""
