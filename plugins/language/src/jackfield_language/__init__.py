"""The grammar of dates, times, numbers and amounts, and words in general."""
