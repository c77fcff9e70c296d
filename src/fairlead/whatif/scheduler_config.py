"""KubeSchedulerConfiguration: accepted as far as the engine does what it says.
"""
