"""What is promised: coverage over all nodes together, of each class, or of each group.

Each promise is one file (`marginal`, `per_class`, `per_group`), by a registry. `class_alphas` has
the share that may be missed by class and what a rare class gives to calibration, `trade_off` what a
promise of a class costs.
"""
