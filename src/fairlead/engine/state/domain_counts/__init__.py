"""Pod counts per topology domain, kept up to date as pods and nodes change."""
