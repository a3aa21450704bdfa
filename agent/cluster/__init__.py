"""Asks the cluster and the registry for the topics, topic ids and schemas of each source of lines.

destinations  a source with its two topics, as the cluster describes them
connection    asks brokers and registry for topics, ids and schemas
known_schemas the ids that the registry gave before, for the time when it does not answer
own_status    tells the audit how the agent was started, and what it waits for
topics        each topic's id, the time up to which it is sealed, whether its log was replaced
"""
