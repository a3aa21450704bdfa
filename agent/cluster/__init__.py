"""What the cluster and the registry know of a source of lines: its topics, their ids, their
schemas.

destinations  a source with its two topics, as the cluster describes them
connection    asks brokers and registry for topics, ids and schemas
topics        each topic's id, the time up to which it is sealed, whether its log was replaced
"""
