"""The command line: one module per verb under `commands`, assembled in `app`."""
