"""What `ringfence.open` returns: the commands as methods, tables as pandas frames."""
