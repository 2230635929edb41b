"""Who may come in, as whom, how much they may ask for, and what stays hidden.

Nothing here knows another part of the host: `gate` decides on a request or handshake, with `keys` and `jwts`
for tokens and `origins` for names; `limits`, `wire` and `allowances` bound what arrives; `headers` dress what
leaves, and `redaction` keeps secrets out of the log.
"""
