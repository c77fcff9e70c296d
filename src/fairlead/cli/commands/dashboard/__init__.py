"""The command `fairlead dashboard`, and the dashboards of `fairlead up` and `fairlead run`."""
