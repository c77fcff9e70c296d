"""kube-scheduler over time, against a scripted world."""
