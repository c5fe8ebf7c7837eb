"""What no entry about a row shows: schema, numbers and owners of rows, the anchor."""
