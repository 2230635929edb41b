"""Provider servers that follow a script: the real wire protocols, for the real SDKs, without a key.

A script is a coroutine that plays the model: it hears the user, speaks, calls tools and sees their results.
The same script runs on every protocol, so that a conversation is written once and held on all of them.
"""
