"""Replays recorded requests and kubectl commands."""
