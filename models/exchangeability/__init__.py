"""Are the nodes exchangeable? Martingales, permutation tests, arrival tests, the advisor."""
