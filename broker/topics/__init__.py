"""What the cluster knows of its topics, as the loop sees it.

    config_table    the settings that a topic can have: names, types, checks, defaults
    configs         a topic's settings: parsed for its logs, and checked before they are stored
    alteration      changes of a topic's settings (pure)
    assignment      which broker gets which partition (pure)
    hosting         follows ZooKeeper's topics, and serves the partitions assigned to this broker
    administration  topics created, extended, altered, deleted

ZooKeeper is the truth. `broker.catalog` is replaced whenever ZooKeeper's content changes. While
ZooKeeper is away, the catalog does not change, so produce and fetch go on.
"""
