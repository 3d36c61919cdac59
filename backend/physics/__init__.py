"""Physical characters (Liu 2016): bodies, engines, sampling control, control graphs.

The data walks from a Skeleton to a `Body`, from a Clip to a `Reference` on that body, through
sampling (`samcon`) and guided learning to a control graph, and from simulated states back to a
Clip. `engine` is the only door to a physics engine.
"""
