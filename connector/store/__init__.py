"""The SQL audit store: tables, lease, chain, and every query. All SQL is here."""
