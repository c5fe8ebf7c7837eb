"""Lists of nodes with a promised share of wrong ones (conformal selection)."""
