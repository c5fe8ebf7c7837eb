"""What is promised to whom: over all nodes together, for each class, for each group.

`class_alphas` has the share that may be missed by class, `strata` who is calibrated with whom,
`trade_off` what a promise of a class costs, `sentence` the promise in force in words.
"""
