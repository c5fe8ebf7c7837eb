"""`ringfence report`: the audit as files to keep, mail and print."""
