"""Node health: heartbeats, the periodic monitor pass, and marking pods as not ready."""
