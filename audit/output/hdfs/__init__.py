"""HDFS as an output.

output          HdfsOutput, a folder of HDFS
client          makes the client of hdfs-native (in Rust, without a JVM) for an address
configuration   the files with which administrators configure Hadoop's clients
address         which NameNodes and which folder a URL names
handshake       asks a NameNode how its clients authenticate
answer          waits for the client's answers, for a limited time
keytab          which principals a keytab has
failures        turns the errors of hdfs-native into `StoreFailed` and `StoreUnreachable`
"""
