"""The part of Fairlead that decides: stimuli and `now` go in, commands come out.

Nothing here reads a clock, uses random numbers, or does I/O. `engine.py` passes each stimulus to
the state and then to every controller; `compose.py` puts the controllers together. The layers,
lowest first:

    core            stimulus, command, status, instant, timer queue, reporter
    state           the known cluster as a table of nodes; assumed changes; `fork` for simulations
    framework       scheduling extension points and the runtime that calls plugins
    plugins         the plugins, with upstream's names; they filter and score nodes for a pod
    scheduling, batch, nodelifecycle, workloads, kubelet, autoscaling    the controllers
    configuration   reads KubeSchedulerConfiguration files
"""
