"""Discovery: documents that list the served groups, versions and resources."""
