"""Lists every API that this broker serves. The answer to ApiVersions is made from this list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skidway.broker.api import (
    alter_configs,
    alter_user_scram_credentials,
    api_versions,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_user_scram_credentials,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
)
from skidway.broker.api.registration import Api
from skidway.kafka.protocol.apis import ApiKey, VersionRange

SERVED: Final[Mapping[ApiKey, Api]] = {
    module.API.key: module.API
    for module in (
        alter_configs,
        alter_user_scram_credentials,
        api_versions,
        create_acls,
        create_partitions,
        create_topics,
        delete_acls,
        delete_groups,
        delete_records,
        delete_topics,
        describe_acls,
        describe_cluster,
        describe_configs,
        describe_groups,
        describe_log_dirs,
        describe_user_scram_credentials,
        fetch,
        find_coordinator,
        heartbeat,
        incremental_alter_configs,
        init_producer_id,
        join_group,
        leave_group,
        list_groups,
        list_offsets,
        metadata,
        offset_commit,
        offset_delete,
        offset_fetch,
        offset_for_leader_epoch,
        produce,
        sasl_authenticate,
        sasl_handshake,
        sync_group,
    )
}


def ranges() -> dict[ApiKey, VersionRange]:
    """Returns the versions of every API that this broker serves."""
    return {key: api.versions for key, api in SERVED.items()}
