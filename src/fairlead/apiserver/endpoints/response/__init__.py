"""Renders objects, lists, Tables and watch events as bytes."""
