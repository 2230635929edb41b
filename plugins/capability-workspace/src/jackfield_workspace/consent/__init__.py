"""Who is asked before a file is changed."""
