"""Authentication, limits and security headers.

Only the settings of the host are imported here, no other part of it. `authenticator` decides on every request
and handshake, with `api_keys` and `jwt` for tokens and `origins` for the names of hosts and origins. `limits`
holds token buckets and size limits, `headers` the security headers of responses.
"""
