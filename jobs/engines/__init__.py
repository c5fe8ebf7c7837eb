"""Where the forward pass of a run is computed: in this process, or by workers on several machines.

`registry` has the engines by name. Scoring uses the configured one through a common interface; an
engine refuses what it can't compute, rather than compute something else.
"""
