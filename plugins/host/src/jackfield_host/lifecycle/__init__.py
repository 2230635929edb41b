"""From start to end: what is checked and told at the start, whether the host is ready, and how it stops."""
