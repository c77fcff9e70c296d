"""The scheduling queue: active, backoff and unschedulable pods, and what moves them."""
