"""Opens, walks, searches and writes the files below one folder, and nothing outside it."""
