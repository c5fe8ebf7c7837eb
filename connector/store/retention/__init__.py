"""What the setting `[audit] keep_days` takes from the details of old runs, and what it leaves."""
