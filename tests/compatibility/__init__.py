"""What was published once goes on working: golden files of each interface, and the code held against them."""
