"""The brokers' side of a source: its topics, their ids, their schemas.

destinations  a source with its two topics, as the cluster describes them
connection    asks brokers and registry for it
topics        the ids of topics, until when each is sealed, and when its log is another one
"""
