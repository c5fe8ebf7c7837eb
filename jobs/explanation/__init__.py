"""Why a node has its set: counterfactual questions about it, and the answers."""
