"""Bytes written by hand from the protocol's description, field by field.

Each is read whole, cut at every byte, and with a byte behind it; and written. So a mistake that
reader and writer have in common is found here.
"""

from __future__ import annotations

import uuid

import pytest

from skidway.kafka.errors import ProtocolError, TrailingBytes
from skidway.kafka.protocol import Message, decode, encode, fetch_request, fetch_response, produce
from skidway.kafka.protocol.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from skidway.kafka.protocol.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from skidway.kafka.protocol.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from skidway.kafka.protocol.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from skidway.kafka.protocol.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from skidway.kafka.protocol.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from skidway.kafka.protocol.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from skidway.kafka.protocol.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from skidway.kafka.protocol.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from skidway.kafka.protocol.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from skidway.kafka.protocol.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from skidway.kafka.protocol.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    PartitionData,
)
from skidway.kafka.protocol.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from skidway.kafka.protocol.heartbeat import HeartbeatRequest, HeartbeatResponse
from skidway.kafka.protocol.incremental_alter_configs import (
    AlterableConfig as IncrementalConfig,
)
from skidway.kafka.protocol.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from skidway.kafka.protocol.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from skidway.kafka.protocol.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from skidway.kafka.protocol.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from skidway.kafka.protocol.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from skidway.kafka.protocol.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from skidway.kafka.protocol.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from skidway.kafka.protocol.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from skidway.kafka.protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from skidway.kafka.protocol.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from skidway.kafka.protocol.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from skidway.kafka.protocol.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from skidway.kafka.protocol.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from skidway.kafka.protocol.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from support.messages import wire

TOPIC_ID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
GOLDEN: list[tuple[str, int, Message, str]] = []


def golden(name: str, version: int, message: Message, text: str) -> None:
    GOLDEN.append((name, version, message, text))


golden("ApiVersions request", 0, ApiVersionsRequest(), "")
golden(
    "ApiVersions request",
    3,
    ApiVersionsRequest(client_software_name="skidway", client_software_version="0.1.0"),
    """
    08 736b6964776179   # "skidway", length + 1
    06 302e312e30       # "0.1.0"
    00                  # no tags
    """,
)
golden(
    "ApiVersions response",
    0,
    ApiVersionsResponse(
        error_code=35, api_keys=(ApiVersion(api_key=18, min_version=0, max_version=3),)
    ),
    """
    0023                # UNSUPPORTED_VERSION
    00000001            # one API
    0012 0000 0003      #   ApiVersions 0-3
    """,
)
golden(
    "ApiVersions response",
    2,
    ApiVersionsResponse(
        api_keys=(ApiVersion(api_key=0, min_version=0, max_version=9),), throttle_time_ms=5
    ),
    """
    0000                # no error
    00000001            # one API
    0000 0000 0009      #   Produce 0-9
    00000005            # throttle time
    """,
)
golden(
    "ApiVersions response",
    3,
    ApiVersionsResponse(
        api_keys=(
            ApiVersion(api_key=1, min_version=4, max_version=12),
            ApiVersion(api_key=18, min_version=0, max_version=3),
        ),
        supported_features=(SupportedFeatureKey(name="f", min_version=1, max_version=2),),
        finalized_features_epoch=7,
        finalized_features=(
            FinalizedFeatureKey(name="f", max_version_level=2, min_version_level=1),
        ),
        zk_migration_ready=True,
    ),
    """
    0000                # no error
    03                  # two APIs, count + 1
    0001 0004 000c 00   #   Fetch 4-12, no tags
    0012 0000 0003 00   #   ApiVersions 0-3, no tags
    00000000            # throttle time
    04                  # four tags
    00 08               #   0: supported features, eight bytes
    02 02 66 0001 0002 00
    01 08               #   1: finalized features epoch, eight bytes
    0000000000000007
    02 08               #   2: finalized features, eight bytes
    02 02 66 0002 0001 00
    03 01 01            #   3: migration ready, one byte: yes
    """,
)
golden(
    "Metadata request",
    0,
    MetadataRequest(topics=(MetadataRequestTopic(name="logs"),)),
    """
    00000001            # one topic
    0004 6c6f6773       #   "logs"
    """,
)
golden("Metadata request", 1, MetadataRequest(topics=None), "ffffffff  # null: all topics")
golden(
    "Metadata request",
    5,
    MetadataRequest(topics=(), allow_auto_topic_creation=False),
    """
    00000000            # no topics
    00                  # do not create
    """,
)
golden(
    "Metadata request",
    9,
    MetadataRequest(
        topics=(MetadataRequestTopic(name="logs"),), include_cluster_authorized_operations=True
    ),
    """
    02                  # one topic, count + 1
    05 6c6f6773         #   "logs", length + 1
    00                  #   no tags
    01                  # create
    01 00               # operations on the cluster: yes; on topics: no
    00                  # no tags
    """,
)
golden(
    "Metadata request",
    12,
    MetadataRequest(
        topics=(MetadataRequestTopic(topic_id=TOPIC_ID, name=None),),
        include_topic_authorized_operations=True,
    ),
    """
    02                                    # one topic
    00112233445566778899aabbccddeeff      #   id
    00                                    #   null name
    00                                    #   no tags
    01                                    # create
    01                                    # operations on topics: yes (none on the cluster any more)
    00                                    # no tags
    """,
)
BROKER = MetadataResponseBroker(node_id=1, host="127.0.0.1", port=9092)
PARTITION = MetadataResponsePartition(
    partition_index=0, leader_id=1, replica_nodes=(1, 2), isr_nodes=(1,)
)
golden(
    "Metadata response",
    0,
    MetadataResponse(
        brokers=(BROKER,), topics=(MetadataResponseTopic(name="logs", partitions=(PARTITION,)),)
    ),
    """
    00000001                      # one broker
    00000001                      #   id 1
    0009 3132372e302e302e31       #   "127.0.0.1"
    00002384                      #   port 9092
    00000001                      # one topic
    0000                          #   no error
    0004 6c6f6773                 #   "logs"
    00000001                      #   one partition
    0000 00000000                 #     no error, index 0
    00000001                      #     leader 1
    00000002 00000001 00000002    #     replicas 1, 2
    00000001 00000001             #     in sync 1
    """,
)
golden(
    "Metadata response",
    1,
    MetadataResponse(
        brokers=(BROKER,),
        controller_id=1,
        topics=(MetadataResponseTopic(error_code=3, name="gone", is_internal=True),),
    ),
    """
    00000001                      # one broker
    00000001                      #   id 1
    0009 3132372e302e302e31       #   "127.0.0.1"
    00002384                      #   port 9092
    ffff                          #   no rack
    00000001                      # controller 1
    00000001                      # one topic
    0003                          #   UNKNOWN_TOPIC_OR_PARTITION
    0004 676f6e65                 #   "gone"
    01                            #   internal
    00000000                      #   no partitions
    """,
)
golden(
    "Metadata response",
    8,
    MetadataResponse(
        throttle_time_ms=9,
        brokers=(),
        cluster_id="dc1",
        controller_id=1,
        topics=(
            MetadataResponseTopic(
                name="logs",
                partitions=(
                    MetadataResponsePartition(
                        partition_index=0,
                        leader_id=1,
                        leader_epoch=4,
                        replica_nodes=(1,),
                        isr_nodes=(1,),
                    ),
                ),
            ),
        ),
    ),
    """
    00000009                      # throttle time
    00000000                      # no brokers
    0003 646331                   # cluster id "dc1"
    00000001                      # controller 1
    00000001                      # one topic
    0000 0004 6c6f6773 00         #   no error, "logs", not internal
    00000001                      #   one partition
    0000 00000000 00000001        #     no error, index 0, leader 1
    00000004                      #     leader epoch 4
    00000001 00000001             #     replicas 1
    00000001 00000001             #     in sync 1
    00000000                      #     none offline
    80000000                      #   operations on the topic: unknown
    80000000                      # operations on the cluster: unknown
    """,
)
golden(
    "Metadata response",
    12,
    MetadataResponse(
        brokers=(MetadataResponseBroker(node_id=1, host="h", port=9092, rack="r"),),
        cluster_id="dc1",
        controller_id=1,
        topics=(
            MetadataResponseTopic(
                name="logs",
                topic_id=TOPIC_ID,
                partitions=(
                    MetadataResponsePartition(
                        partition_index=0,
                        leader_id=1,
                        leader_epoch=4,
                        replica_nodes=(1,),
                        isr_nodes=(1,),
                    ),
                ),
            ),
        ),
    ),
    """
    00000000                              # throttle time
    02                                    # one broker
    00000001 02 68 00002384 02 72 00      #   id 1, "h", 9092, rack "r", no tags
    04 646331                             # cluster id "dc1"
    00000001                              # controller 1
    02                                    # one topic
    0000 05 6c6f6773                      #   no error, "logs"
    00112233445566778899aabbccddeeff      #   id
    00                                    #   not internal
    02                                    #   one partition
    0000 00000000 00000001 00000004       #     no error, index 0, leader 1, epoch 4
    02 00000001                           #     replicas 1
    02 00000001                           #     in sync 1
    01                                    #     none offline
    00                                    #     no tags
    80000000                              #   operations on the topic: unknown
    00                                    #   no tags
    00                                    # no tags (operations on the cluster ended with 10)
    """,
)
golden(
    "Produce request",
    2,
    ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=(
            TopicProduceData(
                name="t", partition_data=(PartitionProduceData(index=3, records=b"abc"),)
            ),
        ),
    ),
    """
    0001 000003e8       # acks 1, timeout 1000 ms
    00000001            # one topic
    0001 74             #   "t"
    00000001            #   one partition
    00000003            #     index 3
    00000003 616263     #     three bytes of records
    """,
)
golden(
    "Produce request",
    3,
    ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=(
            TopicProduceData(
                name="t",
                partition_data=(
                    PartitionProduceData(index=3, records=b"abc"),
                    PartitionProduceData(index=4, records=None),
                ),
            ),
        ),
    ),
    """
    ffff                # no transactional id
    ffff 000003e8       # acks -1, timeout 1000 ms
    00000001            # one topic
    0001 74             #   "t"
    00000002            #   two partitions
    00000003            #     index 3
    00000003 616263     #     three bytes of records
    00000004            #     index 4
    ffffffff            #     null
    """,
)
golden(
    "Produce request",
    9,
    ProduceRequest(
        transactional_id="x",
        acks=0,
        timeout_ms=1000,
        topic_data=(
            TopicProduceData(
                name="t", partition_data=(PartitionProduceData(index=3, records=bytes(200)),)
            ),
        ),
    ),
    """
    02 78               # transactional id "x"
    0000 000003e8       # acks 0, timeout 1000 ms
    02                  # one topic
    02 74               #   "t"
    02                  #   one partition
    00000003            #     index 3
    c901                #     200 bytes of records: 201 in two groups of seven bits
    """
    + "00" * 200
    + """
    00                  #     no tags
    00                  #   no tags
    00                  # no tags
    """,
)
golden(
    "Produce response",
    1,
    ProduceResponse(
        responses=(
            TopicProduceResponse(
                name="t",
                partition_responses=(
                    PartitionProduceResponse(index=3, error_code=35, base_offset=-1),
                ),
            ),
        ),
    ),
    """
    00000001                      # one topic
    0001 74                       #   "t"
    00000001                      #   one partition
    00000003 0023                 #     index 3, UNSUPPORTED_VERSION
    ffffffffffffffff              #     no base offset
    00000000                      # throttle time, at the end
    """,
)
golden(
    "Produce response",
    7,
    ProduceResponse(
        responses=(
            TopicProduceResponse(
                name="t",
                partition_responses=(
                    PartitionProduceResponse(
                        index=3, base_offset=1234567890123, log_start_offset=5
                    ),
                ),
            ),
        ),
        throttle_time_ms=2,
    ),
    """
    00000001                      # one topic
    0001 74                       #   "t"
    00000001                      #   one partition
    00000003 0000                 #     index 3, no error
    0000011f71fb04cb              #     base offset 1234567890123
    ffffffffffffffff              #     log append time: the record's own
    0000000000000005              #     log start offset 5
    00000002                      # throttle time
    """,
)
REFUSED_RECORD = PartitionProduceResponse(
    index=3,
    error_code=87,
    base_offset=-1,
    log_start_offset=5,
    record_errors=(BatchIndexAndErrorMessage(batch_index=2, batch_index_error_message="no"),),
    error_message="bad",
)
golden(
    "Produce response",
    8,
    ProduceResponse(
        responses=(TopicProduceResponse(name="t", partition_responses=(REFUSED_RECORD,)),)
    ),
    """
    00000001                      # one topic
    0001 74                       #   "t"
    00000001                      #   one partition
    00000003 0057                 #     index 3, INVALID_RECORD
    ffffffffffffffff              #     no base offset
    ffffffffffffffff              #     no log append time
    0000000000000005              #     log start offset 5
    00000001                      #     one record error
    00000002 0002 6e6f            #       record 2, "no"
    0003 626164                   #     "bad"
    00000000                      # throttle time
    """,
)
golden(
    "Produce response",
    9,
    ProduceResponse(
        responses=(TopicProduceResponse(name="t", partition_responses=(REFUSED_RECORD,)),)
    ),
    """
    02                            # one topic
    02 74                         #   "t"
    02                            #   one partition
    00000003 0057                 #     index 3, INVALID_RECORD
    ffffffffffffffff              #     no base offset
    ffffffffffffffff              #     no log append time
    0000000000000005              #     log start offset 5
    02                            #     one record error
    00000002 03 6e6f 00           #       record 2, "no", no tags
    04 626164                     #     "bad"
    00 00                         #     no tags, no tags
    00000000                      # throttle time
    00                            # no tags
    """,
)
golden(
    "Fetch request",
    4,
    FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=52428800,
        topics=(
            FetchTopic(
                topic="t",
                partitions=(
                    FetchPartition(partition=3, fetch_offset=10, partition_max_bytes=1048576),
                ),
            ),
        ),
    ),
    """
    ffffffff            # replica id: a consumer
    000001f4            # at most 500 ms
    00000001            # at least one byte
    03200000            # at most 50 MiB
    00                  # read uncommitted
    00000001            # one topic
    0001 74             #   "t"
    00000001            #   one partition
    00000003            #     index 3
    000000000000000a    #     from offset 10
    00100000            #     at most 1 MiB
    """,
)
golden(
    "Fetch request",
    11,
    FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=52428800,
        isolation_level=1,
        session_id=7,
        session_epoch=2,
        topics=(
            FetchTopic(
                topic="t",
                partitions=(
                    FetchPartition(
                        partition=3,
                        current_leader_epoch=4,
                        fetch_offset=10,
                        partition_max_bytes=1048576,
                    ),
                ),
            ),
        ),
        forgotten_topics_data=(ForgottenTopic(topic="u", partitions=(5, 6)),),
        rack_id="r",
    ),
    """
    ffffffff            # replica id: a consumer
    000001f4            # at most 500 ms
    00000001            # at least one byte
    03200000            # at most 50 MiB
    01                  # read committed
    00000007 00000002   # session 7, epoch 2
    00000001            # one topic
    0001 74             #   "t"
    00000001            #   one partition
    00000003            #     index 3
    00000004            #     leader epoch 4
    000000000000000a    #     from offset 10
    ffffffffffffffff    #     log start offset: only followers have one
    00100000            #     at most 1 MiB
    00000001            # one forgotten topic
    0001 75             #   "u"
    00000002 00000005 00000006
    0001 72             # rack "r"
    """,
)
golden(
    "Fetch request",
    12,
    FetchRequest(
        cluster_id="c",
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=52428800,
        topics=(
            FetchTopic(
                topic="t",
                partitions=(
                    FetchPartition(
                        partition=3,
                        current_leader_epoch=4,
                        fetch_offset=10,
                        last_fetched_epoch=2,
                        partition_max_bytes=1048576,
                    ),
                ),
            ),
        ),
        forgotten_topics_data=(ForgottenTopic(topic="u", partitions=(5,)),),
    ),
    """
    ffffffff            # replica id: a consumer
    000001f4            # at most 500 ms
    00000001            # at least one byte
    03200000            # at most 50 MiB
    00                  # read uncommitted
    00000000 ffffffff   # no session
    02                  # one topic
    02 74               #   "t"
    02                  #   one partition
    00000003            #     index 3
    00000004            #     leader epoch 4
    000000000000000a    #     from offset 10
    00000002            #     last fetched epoch 2
    ffffffffffffffff    #     no log start offset
    00100000            #     at most 1 MiB
    00                  #     no tags
    00                  #   no tags
    02                  # one forgotten topic
    02 75               #   "u"
    02 00000005         #   partition 5
    00                  #   no tags
    01                  # rack "": length 0, + 1
    01 00 02 02 63      # one tag: 0, two bytes, cluster id "c"
    """,
)
golden(
    "Fetch response",
    4,
    FetchResponse(
        responses=(
            FetchableTopicResponse(
                topic="t",
                partitions=(
                    PartitionData(
                        partition_index=3,
                        high_watermark=12,
                        last_stable_offset=11,
                        aborted_transactions=(AbortedTransaction(producer_id=9, first_offset=10),),
                        records=b"abc",
                    ),
                ),
            ),
        ),
    ),
    """
    00000000                            # throttle time
    00000001                            # one topic
    0001 74                             #   "t"
    00000001                            #   one partition
    00000003 0000                       #     index 3, no error
    000000000000000c                    #     high watermark 12
    000000000000000b                    #     last stable offset 11
    00000001                            #     one aborted transaction
    0000000000000009 000000000000000a   #       producer 9, from 10 on
    00000003 616263                     #     three bytes of records
    """,
)
golden(
    "Fetch response",
    11,
    FetchResponse(
        session_id=0,
        responses=(
            FetchableTopicResponse(
                topic="t",
                partitions=(
                    PartitionData(
                        partition_index=3,
                        error_code=1,
                        high_watermark=12,
                        last_stable_offset=12,
                        log_start_offset=5,
                    ),
                ),
            ),
        ),
    ),
    """
    00000000            # throttle time
    0000 00000000       # no error, session 0
    00000001            # one topic
    0001 74             #   "t"
    00000001            #   one partition
    00000003 0001       #     index 3, OFFSET_OUT_OF_RANGE
    000000000000000c    #     high watermark 12
    000000000000000c    #     last stable offset 12
    0000000000000005    #     log start offset 5
    ffffffff            #     aborted transactions: null
    ffffffff            #     no preferred replica
    00000000            #     no records
    """,
)
golden(
    "Fetch response",
    12,
    FetchResponse(
        session_id=0,
        responses=(
            FetchableTopicResponse(
                topic="t",
                partitions=(
                    PartitionData(
                        partition_index=3,
                        high_watermark=12,
                        last_stable_offset=12,
                        log_start_offset=5,
                        current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=4),
                        aborted_transactions=(),
                        records=b"abc",
                    ),
                ),
            ),
        ),
    ),
    """
    00000000            # throttle time
    0000 00000000       # no error, session 0
    02                  # one topic
    02 74               #   "t"
    02                  #   one partition
    00000003 0000       #     index 3, no error
    000000000000000c    #     high watermark 12
    000000000000000c    #     last stable offset 12
    0000000000000005    #     log start offset 5
    01                  #     aborted transactions: none
    ffffffff            #     no preferred replica
    04 616263           #     three bytes of records
    01 01 09            #     one tag: 1, nine bytes
    00000001 00000004 00  #     leader 1, epoch 4, no tags
    00                  #   no tags
    00                  # no tags
    """,
)
golden(
    "ListOffsets request",
    1,
    ListOffsetsRequest(
        topics=(
            ListOffsetsTopic(
                name="t", partitions=(ListOffsetsPartition(partition_index=3, timestamp=-2),)
            ),
        )
    ),
    """
    ffffffff            # a consumer
    00000001            # one topic
    0001 74             #   "t"
    00000001            #   one partition
    00000003            #     index 3
    fffffffffffffffe    #     earliest
    """,
)
golden(
    "ListOffsets request",
    6,
    ListOffsetsRequest(
        isolation_level=1,
        topics=(
            ListOffsetsTopic(
                name="t",
                partitions=(
                    ListOffsetsPartition(
                        partition_index=3, current_leader_epoch=4, timestamp=1700000000000
                    ),
                ),
            ),
        ),
    ),
    """
    ffffffff            # a consumer
    01                  # read committed
    02                  # one topic
    02 74               #   "t"
    02                  #   one partition
    00000003 00000004   #     index 3, leader epoch 4
    0000018bcfe56800    #     1700000000000 ms
    00                  #     no tags
    00                  #   no tags
    00                  # no tags
    """,
)
golden(
    "ListOffsets response",
    1,
    ListOffsetsResponse(
        topics=(
            ListOffsetsTopicResponse(
                name="t", partitions=(ListOffsetsPartitionResponse(partition_index=3),)
            ),
        )
    ),
    """
    00000001            # one topic
    0001 74             #   "t"
    00000001            #   one partition
    00000003 0000       #     index 3, no error
    ffffffffffffffff    #     no timestamp
    ffffffffffffffff    #     no offset
    """,
)
golden(
    "ListOffsets response",
    7,
    ListOffsetsResponse(
        topics=(
            ListOffsetsTopicResponse(
                name="t",
                partitions=(
                    ListOffsetsPartitionResponse(
                        partition_index=3, timestamp=1700000000000, offset=42, leader_epoch=4
                    ),
                ),
            ),
        )
    ),
    """
    00000000            # throttle time
    02                  # one topic
    02 74               #   "t"
    02                  #   one partition
    00000003 0000       #     index 3, no error
    0000018bcfe56800    #     1700000000000 ms
    000000000000002a    #     offset 42
    00000004            #     leader epoch 4
    00 00 00            #     no tags at any level
    """,
)
golden(
    "CreateTopics request",
    3,
    CreateTopicsRequest(
        topics=(CreatableTopic(name="t", configs=(CreatableTopicConfig(name="k", value=None),)),),
        timeout_ms=1000,
        validate_only=True,
    ),
    """
    00000001            # one topic
    0001 74             #   "t"
    ffffffff ffff       #   partitions and replication factor: the broker's defaults
    00000000            #   no assignments
    00000001            #   one config
    0001 6b ffff        #     "k", null
    000003e8            # timeout 1000 ms
    01                  # validate only
    """,
)
golden(
    "CreateTopics request",
    7,
    CreateTopicsRequest(
        topics=(CreatableTopic(name="t", num_partitions=8, replication_factor=3),),
        timeout_ms=1000,
    ),
    """
    02                  # one topic
    02 74               #   "t"
    00000008 0003       #   eight partitions, three replicas
    01                  #   no assignments
    01                  #   no configs
    00                  #   no tags
    000003e8            # timeout 1000 ms
    00                  # do it
    00                  # no tags
    """,
)
golden(
    "CreateTopics response",
    2,
    CreateTopicsResponse(
        topics=(CreatableTopicResult(name="t", error_code=36, error_message="there"),)
    ),
    """
    00000000            # throttle time
    00000001            # one topic
    0001 74             #   "t"
    0024                #   TOPIC_ALREADY_EXISTS
    0005 7468657265     #   "there"
    """,
)
golden(
    "CreateTopics response",
    7,
    CreateTopicsResponse(
        topics=(
            CreatableTopicResult(
                name="t",
                topic_id=TOPIC_ID,
                topic_config_error_code=29,
                num_partitions=8,
                replication_factor=3,
                configs=(CreatableTopicConfigs(name="k", value="v", config_source=5),),
            ),
        )
    ),
    """
    00000000                              # throttle time
    02                                    # one topic
    02 74                                 #   "t"
    00112233445566778899aabbccddeeff      #   id
    0000 00                               #   no error, no message
    00000008 0003                         #   eight partitions, three replicas
    02                                    #   one config
    02 6b 02 76 00 05 00 00               #     "k", "v", writable, default, no secret, no tags
    01 00 02 001d                         #   one tag: 0, two bytes, TOPIC_AUTHORIZATION_FAILED
    00                                    # no tags
    """,
)
golden(
    "DeleteTopics request",
    1,
    DeleteTopicsRequest(topic_names=("t", "u"), timeout_ms=1000),
    """
    00000002            # two topics
    0001 74             #   "t"
    0001 75             #   "u"
    000003e8            # timeout 1000 ms
    """,
)
golden(
    "DeleteTopics request",
    6,
    DeleteTopicsRequest(
        topics=(DeleteTopicState(name="t"), DeleteTopicState(topic_id=TOPIC_ID)), timeout_ms=1000
    ),
    """
    03                                          # two topics
    02 74 00000000000000000000000000000000 00   #   "t", no id, no tags
    00 00112233445566778899aabbccddeeff 00      #   null, id, no tags
    000003e8                                    # timeout 1000 ms
    00                                          # no tags
    """,
)
golden(
    "DeleteTopics response",
    1,
    DeleteTopicsResponse(responses=(DeletableTopicResult(name="t", error_code=3),)),
    """
    00000000            # throttle time
    00000001            # one topic
    0001 74             #   "t"
    0003                #   UNKNOWN_TOPIC_OR_PARTITION
    """,
)
golden(
    "DeleteTopics response",
    6,
    DeleteTopicsResponse(
        responses=(
            DeletableTopicResult(name=None, topic_id=TOPIC_ID, error_code=100, error_message="no"),
        )
    ),
    """
    00000000                              # throttle time
    02                                    # one topic
    00                                    #   null
    00112233445566778899aabbccddeeff      #   id
    0064                                  #   UNKNOWN_TOPIC_ID
    03 6e6f                               #   "no"
    00                                    #   no tags
    00                                    # no tags
    """,
)
golden(
    "CreatePartitions request",
    0,
    CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="t", count=5),), timeout_ms=1000),
    """
    00000001            # one topic
    0001 74             #   "t"
    00000005            #   five partitions altogether
    ffffffff            #   no assignments
    000003e8            # timeout 1000 ms
    00                  # do it
    """,
)
golden(
    "CreatePartitions response",
    2,
    CreatePartitionsResponse(
        results=(CreatePartitionsTopicResult(name="t", error_code=37, error_message="no"),)
    ),
    """
    00000000            # throttle time
    02                  # one topic
    02 74               #   "t"
    0025                #   INVALID_PARTITIONS
    03 6e6f             #   "no"
    00                  #   no tags
    00                  # no tags
    """,
)
golden(
    "InitProducerId request",
    0,
    InitProducerIdRequest(transaction_timeout_ms=60000),
    """
    ffff                # no transactional id
    0000ea60            # one minute
    """,
)
golden(
    "InitProducerId request",
    4,
    InitProducerIdRequest(transaction_timeout_ms=60000, producer_id=7, producer_epoch=2),
    """
    00                  # no transactional id
    0000ea60            # one minute
    0000000000000007    # producer id 7
    0002                # epoch 2
    00                  # no tags
    """,
)
golden(
    "InitProducerId response",
    4,
    InitProducerIdResponse(producer_id=7, producer_epoch=3),
    """
    00000000            # throttle time
    0000                # no error
    0000000000000007    # producer id 7
    0003                # epoch 3
    00                  # no tags
    """,
)
golden("FindCoordinator request", 0, FindCoordinatorRequest(key="g"), "0001 67  # group g")
golden(
    "FindCoordinator request",
    3,
    FindCoordinatorRequest(key="g", key_type=1),
    """
    02 67               # "g"
    01                  # a transaction
    00                  # no tags
    """,
)
golden(
    "FindCoordinator response",
    0,
    FindCoordinatorResponse(error_code=15),
    """
    000f                # COORDINATOR_NOT_AVAILABLE
    ffffffff            # no node
    0000                # no host
    ffffffff            # no port
    """,
)
golden(
    "FindCoordinator response",
    3,
    FindCoordinatorResponse(node_id=1, host="h", port=9092),
    """
    00000000            # throttle time
    0000 00             # no error, no message
    00000001            # node 1
    02 68               # "h"
    00002384            # port 9092
    00                  # no tags
    """,
)
golden(
    "JoinGroup request",
    2,
    JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10000,
        rebalance_timeout_ms=60000,
        member_id="m",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b"\x01"),),
    ),
    """
    0001 67             # group g
    00002710            # session timeout 10 s
    0000ea60            # rebalance timeout 60 s
    0001 6d             # member m
    0008 636f6e73756d6572
    00000001            # one protocol
    0005 72616e6765     #   range
    00000001 01         #   its metadata
    """,
)
golden(
    "JoinGroup request",
    7,
    JoinGroupRequest(
        group_id="g",
        session_timeout_ms=1,
        rebalance_timeout_ms=2,
        group_instance_id="i",
        protocol_type="c",
        protocols=(JoinGroupRequestProtocol(name="r", metadata=b""),),
    ),
    """
    02 67               # group g
    00000001 00000002   # timeouts
    01                  # no member id
    02 69               # instance i
    02 63               # protocol type c
    02                  # one protocol
    02 72 01 00         #   r, no metadata, no tags
    00                  # no tags
    """,
)
golden(
    "JoinGroup response",
    5,
    JoinGroupResponse(
        generation_id=3,
        protocol_name="r",
        leader="m",
        member_id="m",
        members=(JoinGroupResponseMember(member_id="m", group_instance_id="i", metadata=b"\xff"),),
    ),
    """
    00000000            # throttle time
    0000                # no error
    00000003            # generation 3
    0001 72             # protocol r
    0001 6d             # led by m
    0001 6d             # to m
    00000001            # one member
    0001 6d 0001 69     #   m, instance i
    00000001 ff         #   its metadata
    """,
)
golden(
    "JoinGroup response",
    7,
    JoinGroupResponse(error_code=79, protocol_name=None, member_id="m-1"),
    """
    00000000            # throttle time
    004f                # MEMBER_ID_REQUIRED
    ffffffff            # no generation
    00 00               # neither protocol type nor protocol
    01                  # no leader
    04 6d2d31           # the id to come back with
    01                  # no members
    00                  # no tags
    """,
)
golden(
    "SyncGroup request",
    0,
    SyncGroupRequest(
        group_id="g",
        generation_id=3,
        member_id="m",
        assignments=(SyncGroupRequestAssignment(member_id="n", assignment=b"\x07"),),
    ),
    """
    0001 67             # group g
    00000003            # generation 3
    0001 6d             # member m
    00000001            # one assignment
    0001 6e 00000001 07
    """,
)
golden(
    "SyncGroup request",
    5,
    SyncGroupRequest(
        group_id="g", generation_id=3, member_id="m", protocol_type="c", protocol_name="r"
    ),
    """
    02 67               # group g
    00000003            # generation 3
    02 6d               # member m
    00                  # no instance id
    02 63 02 72         # type c, protocol r
    01                  # no assignments
    00                  # no tags
    """,
)
golden("SyncGroup response", 0, SyncGroupResponse(error_code=27), "001b 00000000")
golden(
    "SyncGroup response",
    5,
    SyncGroupResponse(protocol_type="c", protocol_name="r", assignment=b"\x07"),
    """
    00000000            # throttle time
    0000                # no error
    02 63 02 72         # type c, protocol r
    02 07               # the assignment
    00                  # no tags
    """,
)
golden(
    "Heartbeat request",
    3,
    HeartbeatRequest(group_id="g", generation_id=3, member_id="m", group_instance_id="i"),
    "0001 67 00000003 0001 6d 0001 69",
)
golden(
    "Heartbeat request",
    4,
    HeartbeatRequest(group_id="g", generation_id=3, member_id="m"),
    "02 67 00000003 02 6d 00 00  # no instance id, no tags",
)
golden("Heartbeat response", 0, HeartbeatResponse(error_code=25), "0019  # UNKNOWN_MEMBER_ID")
golden("Heartbeat response", 4, HeartbeatResponse(), "00000000 0000 00")
golden("LeaveGroup request", 2, LeaveGroupRequest(group_id="g", member_id="m"), "0001 67 0001 6d")
golden(
    "LeaveGroup request",
    4,
    LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="", group_instance_id="i"),)),
    """
    02 67               # group g
    02                  # one member
    01 02 69 00         #   no id, instance i, no tags
    00                  # no tags
    """,
)
golden("LeaveGroup response", 0, LeaveGroupResponse(error_code=25), "0019")
golden(
    "LeaveGroup response",
    3,
    LeaveGroupResponse(
        members=(MemberResponse(member_id="m", group_instance_id=None, error_code=82),)
    ),
    """
    00000000 0000       # throttle time, no error
    00000001            # one member
    0001 6d ffff 0052   #   m, no instance id, FENCED_INSTANCE_ID
    """,
)
golden(
    "OffsetCommit request",
    2,
    OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=3,
        member_id="m",
        retention_time_ms=-1,
        topics=(
            OffsetCommitRequestTopic(
                name="t",
                partitions=(
                    OffsetCommitRequestPartition(
                        partition_index=1, committed_offset=42, committed_metadata="x"
                    ),
                ),
            ),
        ),
    ),
    """
    0001 67             # group g
    00000003            # generation 3
    0001 6d             # member m
    ffffffffffffffff    # no retention time
    00000001 0001 74    # one topic: t
    00000001            #   one partition
    00000001            #   1
    000000000000002a    #   offset 42
    0001 78             #   metadata x
    """,
)
golden(
    "OffsetCommit request",
    8,
    OffsetCommitRequest(
        group_id="g",
        topics=(
            OffsetCommitRequestTopic(
                name="t",
                partitions=(
                    OffsetCommitRequestPartition(
                        partition_index=1, committed_offset=42, committed_leader_epoch=5
                    ),
                ),
            ),
        ),
    ),
    """
    02 67               # group g
    ffffffff            # no generation
    01 00               # neither member nor instance id
    02 02 74            # one topic: t
    02                  #   one partition
    00000001            #   1
    000000000000002a    #   offset 42
    00000005            #   leader epoch 5
    00 00               #   no metadata, no tags
    00 00               # no tags
    """,
)
golden(
    "OffsetCommit response",
    2,
    OffsetCommitResponse(
        topics=(
            OffsetCommitResponseTopic(
                name="t",
                partitions=(OffsetCommitResponsePartition(partition_index=1, error_code=22),),
            ),
        )
    ),
    """
    00000001 0001 74    # one topic: t
    00000001            #   one partition
    00000001 0016       #   1: ILLEGAL_GENERATION
    """,
)
golden(
    "OffsetCommit response",
    8,
    OffsetCommitResponse(
        topics=(
            OffsetCommitResponseTopic(
                name="t", partitions=(OffsetCommitResponsePartition(partition_index=1),)
            ),
        )
    ),
    "00000000 02 02 74 02 00000001 0000 00 00 00  # throttle time, then one topic, one partition",
)
golden(
    "OffsetFetch request",
    1,
    OffsetFetchRequest(
        group_id="g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(1,)),)
    ),
    "0001 67 00000001 0001 74 00000001 00000001",
)
golden(
    "OffsetFetch request",
    7,
    OffsetFetchRequest(group_id="g", topics=None, require_stable=True),
    "02 67 00 01 00  # group g, all topics, only what is stable, no tags",
)
golden(
    "OffsetFetch response",
    1,
    OffsetFetchResponse(
        topics=(
            OffsetFetchResponseTopic(
                name="t", partitions=(OffsetFetchResponsePartition(partition_index=1),)
            ),
        )
    ),
    """
    00000001 0001 74    # one topic: t
    00000001 00000001   #   one partition: 1
    ffffffffffffffff    #   no offset
    0000 0000           #   no metadata, no error
    """,
)
golden(
    "OffsetFetch response",
    7,
    OffsetFetchResponse(
        error_code=14,
        topics=(
            OffsetFetchResponseTopic(
                name="t",
                partitions=(
                    OffsetFetchResponsePartition(
                        partition_index=1,
                        committed_offset=42,
                        committed_leader_epoch=5,
                        metadata="x",
                    ),
                ),
            ),
        ),
    ),
    """
    00000000            # throttle time
    02 02 74            # one topic: t
    02 00000001         #   one partition: 1
    000000000000002a    #   offset 42
    00000005            #   leader epoch 5
    02 78 0000 00       #   metadata x, no error, no tags
    00                  #   no tags
    000e                # COORDINATOR_LOAD_IN_PROGRESS
    00                  # no tags
    """,
)
golden("ListGroups request", 0, ListGroupsRequest(), "")
golden("ListGroups request", 4, ListGroupsRequest(states_filter=("Empty",)), "02 06 456d707479 00")
golden(
    "ListGroups response",
    0,
    ListGroupsResponse(groups=(ListedGroup(group_id="g", protocol_type="c"),)),
    "0000 00000001 0001 67 0001 63",
)
golden(
    "ListGroups response",
    4,
    ListGroupsResponse(groups=(ListedGroup(group_id="g", protocol_type="c", group_state="Dead"),)),
    "00000000 0000 02 02 67 02 63 05 44656164 00 00  # throttle time, no error, one group",
)
golden("DescribeGroups request", 0, DescribeGroupsRequest(groups=("g",)), "00000001 0001 67")
golden(
    "DescribeGroups request",
    5,
    DescribeGroupsRequest(groups=("g",), include_authorized_operations=True),
    "02 02 67 01 00",
)
golden(
    "DescribeGroups response",
    4,
    DescribeGroupsResponse(
        groups=(
            DescribedGroup(
                group_id="g",
                group_state="S",
                protocol_type="c",
                protocol_data="r",
                members=(
                    DescribedGroupMember(
                        member_id="m",
                        group_instance_id="i",
                        client_id="x",
                        client_host="h",
                        member_metadata=b"\x01",
                        member_assignment=b"\x02",
                    ),
                ),
            ),
        )
    ),
    """
    00000000            # throttle time
    00000001            # one group
    0000 0001 67        #   no error, g
    0001 53             #   state S
    0001 63 0001 72     #   type c, protocol r
    00000001            #   one member
    0001 6d 0001 69     #     m, instance i
    0001 78 0001 68     #     client x at h
    00000001 01         #     metadata
    00000001 02         #     assignment
    80000000            #   operations: not asked for
    """,
)
golden(
    "DescribeGroups response",
    5,
    DescribeGroupsResponse(groups=(DescribedGroup(group_id="g", error_code=14),)),
    """
    00000000            # throttle time
    02                  # one group
    000e 02 67          #   COORDINATOR_LOAD_IN_PROGRESS, g
    01 01 01            #   no state, type and protocol
    01                  #   no members
    80000000 00         #   operations: not asked for; no tags
    00                  # no tags
    """,
)
golden("DeleteGroups request", 1, DeleteGroupsRequest(groups_names=("g",)), "00000001 0001 67")
golden("DeleteGroups request", 2, DeleteGroupsRequest(groups_names=("g",)), "02 02 67 00")
golden(
    "DeleteGroups response",
    0,
    DeleteGroupsResponse(results=(DeletableGroupResult(group_id="g", error_code=68),)),
    "00000000 00000001 0001 67 0044  # NON_EMPTY_GROUP",
)
golden(
    "DeleteGroups response",
    2,
    DeleteGroupsResponse(results=(DeletableGroupResult(group_id="g"),)),
    "00000000 02 02 67 0000 00 00",
)
golden(
    "OffsetDelete request",
    0,
    OffsetDeleteRequest(
        group_id="g",
        topics=(
            OffsetDeleteRequestTopic(
                name="t", partitions=(OffsetDeleteRequestPartition(partition_index=1),)
            ),
        ),
    ),
    "0001 67 00000001 0001 74 00000001 00000001",
)
golden(
    "OffsetDelete response",
    0,
    OffsetDeleteResponse(
        topics=(
            OffsetDeleteResponseTopic(
                name="t",
                partitions=(OffsetDeleteResponsePartition(partition_index=1, error_code=86),),
            ),
        )
    ),
    """
    0000 00000000       # no error, throttle time
    00000001 0001 74    # one topic: t
    00000001            #   one partition
    00000001 0056       #   1: GROUP_SUBSCRIBED_TO_TOPIC
    """,
)
golden(
    "DescribeConfigs request",
    1,
    DescribeConfigsRequest(
        resources=(DescribeConfigsResource(resource_type=2, resource_name="t"),),
        include_synonyms=True,
    ),
    """
    00000001            # one resource
    02 0001 74          #   the topic "t"
    ffffffff            #   all settings
    01                  # with synonyms
    """,
)
golden(
    "DescribeConfigs response",
    4,
    DescribeConfigsResponse(
        results=(
            DescribeConfigsResult(
                resource_type=4,
                resource_name="1",
                configs=(
                    DescribeConfigsResourceResult(
                        name="k",
                        value="v",
                        read_only=True,
                        config_source=4,
                        synonyms=(DescribeConfigsSynonym(name="k", value=None, source=5),),
                        config_type=2,
                        documentation="d",
                    ),
                ),
            ),
        )
    ),
    """
    00000000            # throttle time
    02                  # one resource
    0000 00             #   no error, no message
    04 02 31            #   the broker "1"
    02                  #   one setting
    02 6b 02 76         #     "k", "v"
    01 04 00            #     read only, from the broker's file, no secret
    02                  #     one synonym
    02 6b 00 05 00      #       "k", null, default, no tags
    02 02 64            #     a string, "d"
    00                  #     no tags
    00                  #   no tags
    00                  # no tags
    """,
)
golden(
    "DeleteRecords request",
    0,
    DeleteRecordsRequest(
        topics=(
            DeleteRecordsTopic(
                name="t", partitions=(DeleteRecordsPartition(partition_index=3, offset=-1),)
            ),
        ),
        timeout_ms=1000,
    ),
    """
    00000001 0001 74    # one topic, "t"
    00000001            #   one partition
    00000003            #     3
    ffffffffffffffff    #     up to the high watermark
    000003e8            # timeout
    """,
)
golden(
    "DeleteRecords response",
    2,
    DeleteRecordsResponse(
        topics=(
            DeleteRecordsTopicResult(
                name="t",
                partitions=(
                    DeleteRecordsPartitionResult(partition_index=3, low_watermark=7, error_code=1),
                ),
            ),
        )
    ),
    """
    00000000            # throttle time
    02 02 74            # one topic, "t"
    02 00000003         #   one partition, 3
    0000000000000007    #     low watermark
    0001 00             #     OFFSET_OUT_OF_RANGE, no tags
    00                  #   no tags
    00                  # no tags
    """,
)
golden(
    "OffsetForLeaderEpoch request",
    2,
    OffsetForLeaderEpochRequest(
        topics=(
            OffsetForLeaderTopic(
                topic="t",
                partitions=(
                    OffsetForLeaderPartition(partition=1, current_leader_epoch=5, leader_epoch=4),
                ),
            ),
        )
    ),
    """
    00000001 0001 74    # one topic, "t"
    00000001 00000001   #   one partition, 1
    00000005 00000004   #     known epoch 5, asked for 4
    """,
)
golden(
    "OffsetForLeaderEpoch response",
    4,
    OffsetForLeaderEpochResponse(
        topics=(
            OffsetForLeaderTopicResult(
                topic="t", partitions=(EpochEndOffset(partition=1, leader_epoch=3, end_offset=90),)
            ),
        )
    ),
    """
    00000000            # throttle time
    02 02 74            # one topic, "t"
    02 0000 00000001    #   one partition: no error, 1
    00000003            #     epoch 3
    000000000000005a 00 #     ends at 90, no tags
    00                  #   no tags
    00                  # no tags
    """,
)
golden(
    "AlterConfigs request",
    2,
    AlterConfigsRequest(
        resources=(
            AlterConfigsResource(
                resource_type=2,
                resource_name="t",
                configs=(AlterableConfig(name="k", value="v"),),
            ),
        ),
        validate_only=True,
    ),
    """
    02 02 02 74         # one resource, the topic "t"
    02 02 6b 02 76 00   #   one setting, "k", "v", no tags
    00                  #   no tags
    01 00               # validate only, no tags
    """,
)
golden(
    "AlterConfigs response",
    0,
    AlterConfigsResponse(
        responses=(
            AlterConfigsResourceResponse(
                error_code=40, error_message="no", resource_type=2, resource_name="t"
            ),
        )
    ),
    """
    00000000            # throttle time
    00000001            # one resource
    0028 0002 6e6f      #   INVALID_CONFIG, "no"
    02 0001 74          #   the topic "t"
    """,
)
golden(
    "IncrementalAlterConfigs request",
    0,
    IncrementalAlterConfigsRequest(
        resources=(
            IncrementalResource(
                resource_type=2,
                resource_name="t",
                configs=(
                    IncrementalConfig(name="k", config_operation=1, value=None),
                    IncrementalConfig(name="l", config_operation=2, value="v"),
                ),
            ),
        )
    ),
    """
    00000001            # one resource
    02 0001 74          #   the topic "t"
    00000002            #   two changes
    0001 6b 01 ffff     #     delete "k"
    0001 6c 02 0001 76  #     append "v" to "l"
    00                  # not only validate
    """,
)
golden(
    "IncrementalAlterConfigs response",
    1,
    IncrementalAlterConfigsResponse(
        responses=(AlterConfigsResourceResponse(resource_type=2, resource_name="t"),)
    ),
    """
    00000000            # throttle time
    02 0000 00          # one resource: no error, no message
    02 02 74 00         #   the topic "t", no tags
    00                  # no tags
    """,
)
golden(
    "DescribeLogDirs request",
    1,
    DescribeLogDirsRequest(topics=None),
    "ffffffff  # null: everything",
)
golden(
    "DescribeLogDirs response",
    4,
    DescribeLogDirsResponse(
        results=(
            DescribeLogDirsResult(
                log_dir="/d",
                topics=(
                    DescribeLogDirsTopic(
                        name="t",
                        partitions=(
                            DescribeLogDirsPartition(partition_index=1, partition_size=256),
                        ),
                    ),
                ),
                total_bytes=4096,
                usable_bytes=1024,
            ),
        )
    ),
    """
    00000000 0000       # throttle time, no error
    02 0000 03 2f64     # one directory: no error, "/d"
    02 02 74            #   one topic, "t"
    02 00000001         #     one partition, 1
    0000000000000100    #       256 bytes
    0000000000000000    #       no lag
    00 00               #       no future replica, no tags
    00                  #     no tags
    0000000000001000    #   total
    0000000000000400 00 #   usable, no tags
    00                  # no tags
    """,
)
golden("DescribeCluster request", 0, DescribeClusterRequest(), "00 00  # no operations, no tags")
golden(
    "DescribeCluster response",
    0,
    DescribeClusterResponse(
        cluster_id="c",
        controller_id=1,
        brokers=(DescribeClusterBroker(broker_id=1, host="h", port=9092),),
    ),
    """
    00000000 0000 00    # throttle time, no error, no message
    02 63 00000001      # "c", controller 1
    02 00000001 02 68   # one broker, 1, "h"
    00002384 00 00      #   port 9092, no rack, no tags
    80000000 00         # operations unknown, no tags
    """,
)

every = pytest.mark.parametrize(
    ("version", "message", "body"),
    [
        pytest.param(version, message, wire(text), id=f"{name} {version}".replace(" ", "-"))
        for name, version, message, text in GOLDEN
    ],
)


@every
def test_written(version: int, message: Message, body: bytes) -> None:
    """A message is written as the bytes that stand here."""
    assert encode(message, version).hex(" ") == body.hex(" ")


@every
def test_read(version: int, message: Message, body: bytes) -> None:
    """The bytes are read as the message, and nothing shorter or longer is."""
    assert decode(type(message), body, version) == message
    with pytest.raises(TrailingBytes):
        decode(type(message), body + b"\0", version)
    for end in range(len(body)):
        with pytest.raises(ProtocolError):
            decode(type(message), body[:end], version)


HOT = {
    ProduceRequest: produce.parse_request,
    ProduceResponse: produce.parse_response,
    FetchRequest: fetch_request.parse_request,
    FetchResponse: fetch_response.parse_response,
}


@pytest.mark.parametrize(
    ("version", "message", "body"),
    [
        pytest.param(version, message, wire(text), id=f"{name} {version}".replace(" ", "-"))
        for name, version, message, text in GOLDEN
        if type(message) in HOT
    ],
)
def test_hot_paths_read_the_same_bytes(version: int, message: Message, body: bytes) -> None:
    """The hand-written parsers take the bytes that stand here, and nothing shorter or longer."""
    parse = HOT[type(message)]
    assert parse(memoryview(body), version)
    with pytest.raises(TrailingBytes):
        parse(memoryview(body + b"\0"), version)
    for end in range(len(body)):
        with pytest.raises(ProtocolError):
            parse(memoryview(body)[:end], version)
