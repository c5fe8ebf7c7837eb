"""Why a node has its set: what is asked about it, and the answers."""
