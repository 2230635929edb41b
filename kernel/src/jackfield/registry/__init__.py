"""The frozen registry at run time: its tools, and the schemas of their arguments and results."""
