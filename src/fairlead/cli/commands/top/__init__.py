"""`fairlead top`: nodes and pods by usage and requests, pending pods and events, in a terminal."""
