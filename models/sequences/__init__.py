"""Graph sequences of the paper and their replay: what `ringfence reproduce` and tests measure."""
