"""What a verb goes on from, compared with its seal as it is read."""
