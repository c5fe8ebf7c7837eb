"""The dashboard: server-rendered pages, a JSON API and metrics over the audit store."""
