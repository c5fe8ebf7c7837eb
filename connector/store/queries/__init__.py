"""What pages, reports and `status` read from the audit store: small queries, typed records."""
