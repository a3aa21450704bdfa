"""The topics of the cluster: their settings, and the partitions that this broker serves.

    config_table    the settings that a topic can have: names, types, checks, defaults
    configs         a topic's settings: parsed for its logs, and checked before they are stored
    alteration      computes changes of a topic's settings (pure)
    assignment      decides which broker gets which partition (pure)
    auto_creation   limits how many topics requests for unknown topics create (pure)
    hosting         follows ZooKeeper's topics, and serves the partitions assigned to this broker
    administration  creates, extends, alters and deletes topics

The topics are stored in ZooKeeper. `broker.catalog` is a snapshot of them, which is replaced
whenever ZooKeeper's content changes. While ZooKeeper cannot be reached, the catalog does not
change, so the broker still serves produce and fetch requests.
"""
