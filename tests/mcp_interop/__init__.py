"""MCP programs that this project did not write, and what tests of our MCP plugins need to run them."""
