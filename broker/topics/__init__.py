"""What the cluster knows of its topics, as the loop sees it.

    config_table    the settings that a topic can have: names, types, checks, defaults
    configs         what a log makes of its topic's settings, and what is wrong with wanted ones
    alteration      changes of a topic's settings: pure
    assignment      which broker gets which partition: pure
    hosting         topics as ZooKeeper says they are, and the partitions that lie here
    administration  topics created, extended, altered, deleted

ZooKeeper is the truth; `broker.catalog` is replaced whenever it changes and otherwise stays as it
was, so that the data path goes on while ZooKeeper is away.
"""
