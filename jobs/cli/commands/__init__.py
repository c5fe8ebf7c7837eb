"""The verbs of the command line, one module each: its options, the call, and its text view."""
