"""A mind on a language model that runs in this process, by llama.cpp."""
