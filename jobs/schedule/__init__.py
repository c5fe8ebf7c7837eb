"""`ringfence schedule`: bells from the configuration, truth in the audit store."""
