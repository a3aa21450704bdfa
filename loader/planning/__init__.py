"""What a load takes.

    topics    which topics a configuration means
    bounds    log start and high watermark of partitions, leader by leader
    plan      the offset range of each partition, cut into slices

Only `bounds` asks brokers; the rest is pure.
"""
