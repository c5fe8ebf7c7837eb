"""A project for agents: reading tools over the Model Context Protocol (`ringfence mcp`)."""
