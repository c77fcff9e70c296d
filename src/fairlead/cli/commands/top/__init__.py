"""`fairlead top`: nodes and pods with usage and requests; also pending pods and events."""
