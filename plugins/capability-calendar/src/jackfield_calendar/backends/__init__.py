"""Calendar backends, one module for each."""
