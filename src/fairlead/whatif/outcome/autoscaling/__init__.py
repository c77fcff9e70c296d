"""The effects of autoscalers in a run: nodes, replicas, and pods' waiting times for nodes."""
