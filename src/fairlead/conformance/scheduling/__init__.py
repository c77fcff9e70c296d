"""Replays decisions of kube-scheduler: about a pod, a sequence of pods, or a pod with volumes."""
