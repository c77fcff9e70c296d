"""What an outcome means: the verdict, the rules of `--fail-on`, and how certain both are."""
