"""HorizontalPodAutoscalers scale workloads to their load.

upstream: pkg/controller/podautoscaler
"""
