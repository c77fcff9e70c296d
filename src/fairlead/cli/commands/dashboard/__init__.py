"""`fairlead dashboard`, and the dashboard that `fairlead up --dashboard` serves."""
