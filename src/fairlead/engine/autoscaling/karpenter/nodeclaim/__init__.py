"""NodeClaims from launch to removal: conditions, pod events, expiration, drains."""
