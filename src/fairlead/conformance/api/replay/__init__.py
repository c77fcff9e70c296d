"""Replaying recorded exchanges and kubectl commands."""
