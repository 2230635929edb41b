"""Extract e-mail addresses, phone numbers, links and the names given with them from a text."""
