"""What the tools say of themselves: guides, schemas, and how their examples speak of each argument."""
