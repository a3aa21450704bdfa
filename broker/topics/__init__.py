"""What the cluster knows of its topics, as the loop sees it.

    catalog   brokers, topics, partitions, settings: an immutable picture of what ZooKeeper says
    configs   the settings that a topic can have: names, types, bounds, defaults

ZooKeeper is the truth; the catalog is replaced whenever it changes and otherwise stays as it was,
so that the data path goes on while ZooKeeper is away.
"""
