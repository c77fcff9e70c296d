"""User plugins: checked when a profile is built, guarded and measured when they run."""
