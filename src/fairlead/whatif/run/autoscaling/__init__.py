"""The actions and effects of node and pod autoscalers in a run."""
