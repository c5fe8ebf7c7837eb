"""The checks of `ringfence doctor`, by their subject; a check yields findings.

A new check is a function and a line in the tuple of its module.
"""
