"""Computing on arrays: networks, inference, conformity scores, prediction sets, guarantees.

No function here reads a file, a clock, a database or global random state. What says "Library only"
in its first line is offered and tested, but reached by no job.
"""
