"""The controller of HorizontalPodAutoscalers, which scale workloads to their load.

upstream: pkg/controller/podautoscaler
"""
