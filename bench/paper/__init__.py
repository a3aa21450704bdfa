"""Repeats the experiment of the Kafka paper (Kreps, Narkhede, Rao: "Kafka", NetDB 2011, section 5).

One producer sends 10 million messages of 200 bytes, in batches of 1 and of 50, without waiting for
answers. Then one consumer reads the messages with a prefetch of about 200 KB. Skidway, Apache
Kafka, RabbitMQ and ActiveMQ (the sides) run one after the other on the machine, each with one
partition or queue. The messages are persistent and flushed asynchronously. If a system is too slow
for 10 million messages, its producer runs for a fixed time instead. Its consumer reads the messages
that were sent, and also runs for at most this time. RabbitMQ and ActiveMQ have no batches.

    experiment    runs the sides in turn; makes the table and the paper's figures 4 and 5
    series        records the progress of a run, with a point about every second
    kafka_clients producer and consumer for the two systems that speak Kafka's protocol
    rabbitmq      RabbitMQ's server from Debian's package, and its perf-test
    activemq      ActiveMQ's server from Debian's package, and its producer and consumer threads

Each system is used with its usual client: Skidway and Kafka with librdkafka, called from Python;
RabbitMQ and ActiveMQ with their own Java clients. Each system runs only once. The figures have a
point for every second, so they show how steady each system's throughput was.
"""
