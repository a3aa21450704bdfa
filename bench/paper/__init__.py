"""The paper's experiment again (Kreps, Narkhede, Rao: "Kafka", NetDB 2011, section 5).

One producer sends 10 million messages of 200 bytes, in batches of 1 and of 50, without waiting for
answers; then one consumer reads them with a prefetch of about 200 KB. Skidway, Apache Kafka,
RabbitMQ and ActiveMQ run one after the other on the machine, each with one partition or queue. The
messages are persistent and flushed asynchronously. A side that is too slow for 10 million messages
gets a fixed time instead; its consumer reads the messages that its producer sent. RabbitMQ and
ActiveMQ have no batches.

    experiment    the sides in turn, the table, and the paper's figures 4 and 5
    series        the progress of a run, with a point about every second
    kafka_clients producer and consumer of the two systems that speak Kafka's protocol
    rabbitmq      a server of Debian's package, and its perf-test
    activemq      a server of Debian's package, and its producer and consumer threads

Each system has its usual client: Skidway and Kafka have librdkafka, called from Python; RabbitMQ
and ActiveMQ have their own Java clients. Each side runs once: its points, one for every second,
show how steady the side was.
"""
