"""Kafka's access control lists: which principal may do what with which resource (KIP-11, KIP-290).

Modules, from low to high:

    acl           one rule
    hosts         addresses of clients, and the ranges of addresses that rules name
    filters       select rules
    validation    which rules Kafka refuses to create
    patterns      which rules are about a resource
    groups        the rules that apply to a principal at a host
    rules         all rules of a cluster, and what they allow to a client

The answers are those of the StandardAuthorizer of Apache Kafka 4.4.0. Conformance tests ask both.
"""
