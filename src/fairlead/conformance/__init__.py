"""Replays recorded decisions of the real binaries and says where we differ."""
