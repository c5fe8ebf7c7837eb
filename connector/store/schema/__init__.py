"""The schema that the migrations make, compared with a store; rows that nothing owns."""
