"""How each network's two layers run over rows: one network, one file, named by its registry line.

`base` says what such a file must offer. A network without one runs as a full forward pass.
"""
