from __future__ import annotations

import base64
import hashlib
import hmac
from typing import cast

import pytest

from skidway.kafka.client import Client
from skidway.kafka.client.scram_credentials import (
    check_altered,
    delete_credentials,
    describe_credentials,
    described_credentials,
    set_password,
    set_password_call,
)
from skidway.kafka.errors import KafkaError
from skidway.kafka.protocol.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from skidway.kafka.protocol.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from support.memory_rights import MemoryRights


def test_the_salted_password_is_that_of_the_standard() -> None:
    """With the salted password of the request, a client can make the proof of RFC 7677's example.
    The request has the password nowhere, and its text does not have the salted password."""
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    salt = "W22ZaJ0SNY7soEsUEjb6gQ=="
    call = set_password_call("user", "pencil", "SCRAM-SHA-256", 4096, base64.b64decode(salt))
    request = cast(AlterUserScramCredentialsRequest, call.build(0))
    (row,) = request.upsertions
    assert (row.mechanism, row.iterations, row.salt) == (1, 4096, base64.b64decode(salt))
    key = hmac.digest(row.salted_password, b"Client Key", "sha256")
    said = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s={salt},i=4096,c=biws,r={nonce}"
    signature = hmac.digest(hashlib.sha256(key).digest(), said.encode(), "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    assert base64.b64encode(proof) == b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert b"pencil" not in row.salted_password
    assert repr(row.salted_password) not in repr(request)


def test_each_password_has_its_own_salt() -> None:
    """Two users with the same password have different salted passwords, as long as the hash."""
    cluster = MemoryRights()
    for user in ("ada", "eve"):
        set_password(cast(Client, cluster), user, "secret", "SCRAM-SHA-512")
    one, other = cluster.passwords.values()
    assert one.salt != other.salt
    assert one.salted_password != other.salted_password
    assert len(one.salted_password) == 64


def test_credentials_are_described_and_deleted() -> None:
    """A user has credentials by mechanism. Who has none is left out."""
    cluster = MemoryRights()
    client = cast(Client, cluster)
    set_password(client, "ada", "secret", "SCRAM-SHA-256", 5000)
    set_password(client, "ada", "secret", "SCRAM-SHA-512")
    set_password(client, "eve", "secret", "SCRAM-SHA-512")
    both = {"SCRAM-SHA-256": 5000, "SCRAM-SHA-512": 4096}
    assert describe_credentials(client) == {"ada": both, "eve": {"SCRAM-SHA-512": 4096}}
    assert describe_credentials(client, ["ada", "bob"]) == {"ada": both}
    delete_credentials(client, "ada", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
    assert describe_credentials(client, ["ada"]) == {}


def test_a_refusal_names_the_user() -> None:
    """An error of the whole request has its text; an error of one user names the user."""
    refused = DescribeUserScramCredentialsResponse(error_code=31, error_message="no rights")
    with pytest.raises(KafkaError, match=r"CLUSTER_AUTHORIZATION_FAILED \(31\): no rights"):
        described_credentials(refused)
    twice = DescribeUserScramCredentialsResult(user="ada", error_code=92, error_message="twice")
    with pytest.raises(KafkaError, match=r"DUPLICATE_RESOURCE \(92\): user ada: twice"):
        described_credentials(DescribeUserScramCredentialsResponse(results=(twice,)))
    row = AlterUserScramCredentialsResult(user="ada", error_code=93)
    with pytest.raises(KafkaError, match=r"UNACCEPTABLE_CREDENTIAL \(93\): user ada: refused"):
        check_altered(AlterUserScramCredentialsResponse(results=(row,)))


def test_a_mechanism_that_is_not_known_is_an_error() -> None:
    """A mechanism that only newer versions of Kafka have is not shown as another one."""
    infos = (CredentialInfo(mechanism=3, iterations=1),)
    row = DescribeUserScramCredentialsResult(user="ada", credential_infos=infos)
    with pytest.raises(KafkaError, match="not known here: 3"):
        described_credentials(DescribeUserScramCredentialsResponse(results=(row,)))
