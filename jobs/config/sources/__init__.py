"""Where settings come from besides the file: secrets, credentials, variables, several files."""
