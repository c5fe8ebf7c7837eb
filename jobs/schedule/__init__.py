"""`ringfence schedule`: times from the configuration, the decision in the audit store."""
