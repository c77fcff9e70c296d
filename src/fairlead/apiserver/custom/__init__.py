"""Value validation of custom resources."""
