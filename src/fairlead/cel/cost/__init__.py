"""What expressions cost: an estimate from their types, and a tracker while they run."""
