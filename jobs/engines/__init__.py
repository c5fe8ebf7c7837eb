"""Where the forward pass of a run is computed: in this process, or by workers on several machines.

`registry` knows the engines by name. Scoring asks the one that the configuration names and does not
know which it is; what an engine can't do it refuses, and never computes otherwise.
"""
