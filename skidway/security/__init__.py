"""TLS and logins, for servers and clients of every protocol.

contexts     TLS contexts from PEM files, made again when a file is replaced
expiry       when the own certificates expire, for metrics
secret_file  passwords in files of their own
tls_socket   a non-blocking socket that speaks TLS
tls_reasons  why a TLS connection failed, in words
sasl         logins by password: PLAIN and SCRAM, without I/O; the client's part
scram_credential  what a server stores of a password
sasl_server  the server's part of a login
x509         what certificates and revocation lists say
principals   who a client is, by the name in its certificate
"""
