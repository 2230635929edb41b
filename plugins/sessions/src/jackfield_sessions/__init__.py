"""A session carried to a model and back, over connections that come and go."""
