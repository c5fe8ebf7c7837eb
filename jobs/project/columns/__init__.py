"""The columns of a model: encoders fitted to them, and means of relationships at nodes."""
