"""Authentication, limits and security headers.

This package imports no part of the host except its settings. `authenticator` decides on every request and
handshake, with `api_keys` and `jwt` for tokens and `origins` for the names of hosts and origins. `limits`
holds token buckets and size limits, `headers` the security headers of responses.
"""
