"""The worklist in SQL: which nodes have a class in their set, surest first; and people's marks."""
