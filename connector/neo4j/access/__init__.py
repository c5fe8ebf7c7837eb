"""Where a Neo4j server is, who logs in to it and how, and to which of its databases."""
