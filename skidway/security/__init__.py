"""TLS and logins, for servers and clients of every protocol.

contexts     TLS contexts from PEM files, made again when a file is replaced
tls_socket   a non-blocking socket that speaks TLS
tls_reasons  why a TLS connection failed, in words
sasl         logins by password: PLAIN and SCRAM, without I/O
"""
