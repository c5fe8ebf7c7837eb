"""Where settings come from besides the file: files of secrets, credentials, NEO4J_*."""
