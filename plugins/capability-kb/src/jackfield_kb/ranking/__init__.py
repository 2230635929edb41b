"""From two opinions, by words and by meaning, to one order and one score."""
