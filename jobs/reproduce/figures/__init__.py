"""The paper's figures, drawn one by one, from the cache where possible."""
