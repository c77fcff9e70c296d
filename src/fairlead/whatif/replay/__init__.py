"""Replays recorded history, and compares each recorded placement with the scheduler's decision."""
