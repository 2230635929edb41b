"""Text: one streamed request for each answer, with the history kept here."""
