"""Pod counts per topology domain and key, cached for the pods that ask for them most often."""
