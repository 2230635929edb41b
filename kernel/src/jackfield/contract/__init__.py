"""Types that cross a boundary: manifest, call, response envelope, errors, intents, context, snapshot."""
