"""Signatures of audit messages: who has sent a message, whatever clusters and mirrors it went
through.

    master key ──HMAC──> sender key of "agent/dc1/web1" ──HMAC──> header `skidway.mac` of a message

Each sender has the key of its own identity only. Who reads the messages has the master keys, and
derives the senders' keys from them. So nobody else can say what a sender counted, and brokers and
mirrors need no part in it.

    identity    who sends: the text for which a key is made
    agent_ids   the ids of agents, which say whose they are
    keys        sender keys and master keys, and the text of a file with keys
    signature   the header's value, and how it is made and checked
    verifier    checks signatures with the keys that it has
    key_file    a file with keys, which is read again when it changes
    signer      signs with the key of one sender, from a file
    setting     the setting that names this file
    master_file  the file with the master keys

HMAC: RFC 2104, with SHA-256.
"""
