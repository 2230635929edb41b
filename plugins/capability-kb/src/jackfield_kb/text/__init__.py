"""Full text: the words of every passage, in a tantivy index."""
