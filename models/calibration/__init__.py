"""Which nodes the sets are calibrated with, and at which level, as data drift.

`window` chooses among the nodes of known class, `cohort` says when a run's nodes may join them,
`adaptive_level` moves the level after late classes, `shift_weights` weighs calibration nodes by how
often due nodes have their degree, `comparison` tests before any class is known whether due nodes
look like calibration nodes.
"""
