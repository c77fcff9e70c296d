"""Edits of existing objects: --set, --set-resources, --scale, --priority-class, --apply-vpa."""
