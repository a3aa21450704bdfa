"""The guide docs/operations.md describes how to recover from breakdowns and how to change a running
fleet. The guide's instructions work on hosts that Ansible has installed.

The fleet consists of a datacenter, the datacenter's mirror, two agents whose logs are written
during all tests, and a registry with TLS. The tests run the commands of the guide itself (see
support.recipes). Each test continues where the previous test ended, and leaves a fleet that
delivers lines to the mirror.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.packaging import wheels
from support import hosts
from support.certificates import Authority
from support.look import health
from support.processes import eventually
from support.recipes import give, recipe
from support.recoveries import MIRROR_TOPIC, NEXT, OLD, Recoveries, hashed
from support.recovery_inventory import APPLICATIONS, HOSTS, LINES, OFFLINE, TOPIC

pytestmark = pytest.mark.operations
CERTIFICATES = "Certificates and passwords of the registry"
LINK = "/opt/skidway/current/agent"
ONE_WAVE = {"skidway_waves": ["100%"]}
CLIENTS = ",".join([*APPLICATIONS, OFFLINE])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recoveries]:
    """The fleet that one run of site.yml installs on bare hosts. Lines are written to the fleet's
    logs until the tests end."""
    if "SKIDWAY_HOSTS" not in os.environ:
        for version in (OLD, NEXT):
            wheels.collect(version)
    with hosts.running(HOSTS) as run:
        made = Recoveries(run)
        if not made.files:
            authority = Authority(tmp_path_factory.mktemp("first"))
            made.certify(authority)
            made.authorities, made.user = authority.certificate.read_text(), "ada:first"
            made.files["users"] = hashed(made.user)
        made.write()
        if not made.version:
            made.control.succeed("site")
            made.start_writing()
        yield made


def started(site: Recoveries, program: str) -> str:
    """Returns the time, as systemd prints it, at which a program on the offline host was
    started."""
    return site.offline.read(f"systemctl show -P ExecMainStartTimestamp skidway-{program}")


def test_tls_is_set_from_the_inventory(site: Recoveries) -> None:
    """If the inventory configures TLS, the agents and the loader can use a registry that uses https
    and requires a password. The audit reports that all lines have arrived, and each line has become
    one row."""
    site.proven()
    give(site.offline, "loader", recipe("The loader failed"), within_s=300)
    rows = site.rows()
    assert {line.split()[0] for line in rows} == {*APPLICATIONS}
    assert set(rows.values()) == {1}


def test_certificates_authority_and_password_are_changed(site: Recoveries, tmp_path: Path) -> None:
    """The certificate authority and the password can be changed step by step. The registry reads
    its new files without a restart, and accepts clients that start between two steps. At the end
    the registry accepts neither the old password nor the old authority."""
    old_trust, old_user = site.authorities, site.user
    new = Authority(tmp_path, "new")
    site.authorities += new.certificate.read_text()
    site.write()
    site.control.succeed("site", "--limit", CLIENTS)

    since = started(site, "registry")
    site.certify(new)
    for name in ("registry.pem", "registry.key"):
        path = f"/etc/skidway/registry/{name}"
        put = f"cp -p {path} {path}.new && cat >{path}.new && mv {path}.new {path}"
        site.offline.run(put, given=site.files[name])
    # The guide's command asks for a password. Here it reads the password from standard input
    # instead.
    line = give(site.offline, "registry", recipe(CERTIFICATES).replace("\n", " <<<second\n"))
    site.files["users"] += line + "\n"
    site.offline.run("cat >>/etc/skidway/registry/users", given=line + "\n")
    for event in ("certificates_read", "registry_users_read"):
        eventually(
            lambda event=event: event in site.log(site.offline, "registry"),
            within_s=30, every_s=1, what=event,
        )  # fmt: skip
        site.applications[0].run("systemctl restart skidway-agent")
        site.healthy("agent@app1")
    assert started(site, "registry") == since

    site.user = "ada:second"
    site.authorities = new.certificate.read_text()
    site.write()
    site.control.succeed("site", "--limit", CLIENTS)
    site.healthy("agent@app1", "agent@app2")
    site.files["users"] = line + "\n"
    site.write()
    site.control.succeed("site", "--limit", "registry")
    site.proven()
    give(site.offline, "loader", recipe("The loader failed"), within_s=300)
    for trust, user in ((old_trust, site.user), (site.authorities, old_user)):
        status, _ = ask_for_subjects(site, trust, user)
        assert status != 0
    assert ask_for_subjects(site, site.authorities, site.user)[0] == 0


def ask_for_subjects(site: Recoveries, trust: str, user: str) -> tuple[int, str]:
    """Configures `skidway schemas` on the registry's host as the guide describes: `trust` is the
    certificate of the authority, and `user` is the name and the password. Lists the subjects, and
    returns the command's exit status and output."""
    site.offline.run("cat >/etc/skidway/ca.pem", given=trust)
    site.offline.run(
        "cd /etc/skidway; umask 027; cat >schemas.user; chgrp skidway-registry schemas.user",
        given=user,
    )
    site.offline.run(
        "cat >/etc/skidway/schemas.yml",
        given=f"schema.registry.url: https://{OFFLINE}:8081\n"
        "schema.registry.basic.auth.user.info.location: /etc/skidway/schemas.user\n"
        "schema.registry.ssl.ca.location: /etc/skidway/ca.pem\n",
    )
    return site.say(site.offline, "registry", "skidway schemas list")


def test_a_source_that_is_away_is_waited_for(site: Recoveries) -> None:
    """While a mirror's source is down, `skidway mirror status` reports the outage. The outage is no
    reason for the mirror to stop a partition for good, and the mirror's broker stays healthy. When
    the source is up again, the mirror continues to copy without an operator's help."""
    site.source.run("systemctl stop skidway-broker")
    status = recipe("A mirror's source is away")
    eventually(lambda: not site.mirror()["reachable"], within_s=60, every_s=1, what="away")
    assert site.say(site.offline, "broker", status)[0] == 3
    assert health(site.offline, "broker")["ok"] is True
    site.source.run("systemctl start skidway-broker")
    eventually(lambda: site.mirror_status()[0] == 0, within_s=60, every_s=1, what="followed")
    site.proven()


def test_a_mirror_names_what_its_source_let_go(site: Recoveries) -> None:
    """If records expire while a mirror is down, the mirror records their offsets as a gap and
    continues after the gap. If the source has the guide's setting of retention.hold, the same
    outage leaves no gap."""
    site.offline.run("systemctl stop skidway-broker")
    alter(site, TOPIC, "dc1", "retention.bytes=4096", "segment.bytes=1024")
    mirrored = site.end("dc1-broker", TOPIC)
    eventually(lambda: site.begin("dc1-broker", TOPIC) > mirrored, within_s=60, every_s=1)
    site.offline.run("systemctl start skidway-broker")
    eventually(lambda: site.mirror().get("gaps"), within_s=60, every_s=1, what="a gap")
    status, said = site.mirror_status()
    assert (status, "expired" in said) == (0, True), said

    give(site.source, "broker", recipe("A mirror has a gap"))
    site.offline.run("systemctl stop skidway-broker")
    mirrored = site.end("dc1-broker", TOPIC)
    eventually(lambda: site.end("dc1-broker", TOPIC) > mirrored + 300, within_s=90, every_s=1)
    assert site.begin("dc1-broker", TOPIC) < mirrored
    site.offline.run("systemctl start skidway-broker")
    eventually(lambda: site.mirror().get("lag") == 0, within_s=60, every_s=1, what="followed")
    assert site.mirror_status()[1] == said
    alter(site, TOPIC, "dc1", "retention.bytes=-1", "segment.bytes=1073741824")
    site.proven()


def test_a_mirror_whose_source_went_back_follows_the_right_one_again(site: Recoveries) -> None:
    """If a mirror's source comes back with an older copy of its disk, the mirror stops without
    changing its log, and says why. After the right disk has been restored, the mirror's broker and
    the source's counter continue when they are restarted."""
    keep_a_copy(site)
    ends = site.end("offline-broker", "dc1.nginx")
    eventually(lambda: site.end("offline-broker", "dc1.nginx") > ends + 100, within_s=90, every_s=1)
    agents(site, "stop")
    site.source.run(SWAP.format(new="copy", old="right"))
    site.healthy("broker@dc1")
    eventually(lambda: site.mirror().get("stopped_count"), within_s=60, every_s=1, what="stopped")
    status, said = site.mirror_status()
    assert status == 1
    assert "below the mirror's end" in said, said
    site.source.run(SWAP.format(new="right", old="copy"))
    site.healthy("broker@dc1")
    diverged = "A mirror is stopped as diverged"
    give(site.offline, "broker", recipe(diverged, 0))
    give(site.offline, "audit", recipe(diverged, 1))
    eventually(lambda: site.mirror_status()[0] == 0, within_s=60, every_s=1, what="followed")
    agents(site, "start")
    site.proven()


def test_what_expired_before_a_load_is_accepted_by_name(site: Recoveries) -> None:
    """If records expire before they are loaded, the loader reports their offsets and ends with
    status 1, until the operator accepts the gap. With the guide's setting of retention.hold, no
    record expires before it is loaded."""
    alter(site, MIRROR_TOPIC, "offline", "retention.bytes=4096", "segment.bytes=1024")
    end = site.end("offline-broker", MIRROR_TOPIC)
    eventually(lambda: site.begin("offline-broker", MIRROR_TOPIC) > end, within_s=90, every_s=1)
    passed = "Retention passed before a load"
    give(site.offline, "loader", recipe(passed, 0))
    status, said = site.say(site.offline, "loader", "skidway load run")
    assert status == 1, said
    asked = re.search(r"--set gaps.accepted=(\S+/0/\d+-\d+)", said)
    assert asked, said
    accept = recipe(passed, 1, {"dc1.nginx/0/120-481": asked[1]})
    give(site.offline, "loader", accept, within_s=300)

    end = site.end("offline-broker", MIRROR_TOPIC)
    eventually(lambda: site.end("offline-broker", MIRROR_TOPIC) > end + 300, within_s=90, every_s=1)
    assert site.begin("offline-broker", MIRROR_TOPIC) <= end
    give(site.offline, "loader", recipe("The loader failed"), within_s=300)
    alter(site, MIRROR_TOPIC, "offline", "retention.bytes=-1", "segment.bytes=1073741824")
    assert set(site.rows().values()) == {1}


def test_a_wave_with_one_agent_that_fails_goes_back_as_a_whole(site: Recoveries) -> None:
    """A wave is a group of hosts that are upgraded together. If one agent of a wave fails,
    upgrade.yml rolls back the whole wave. In this test, both agents of the wave are then healthy
    with the old version, and the play names the agent that failed."""
    drop_in = "/etc/systemd/system/skidway-agent.service.d/90-fails.conf"
    fails = f"[Service]\nExecStartPre=/bin/sh -c 'readlink {LINK} | grep -qw {OLD}'\n"
    site.applications[1].run(f"cat >{drop_in}; systemctl daemon-reload", given=fails)
    words = ["--limit", "agents", "-e", f"skidway_version={NEXT}", "-e", json.dumps(ONE_WAVE)]
    failed = site.control.play("upgrade", *words, "-e", "skidway_health_retries=10")
    assert failed.returncode != 0
    assert "Its wave went back: app2" in failed.output
    for host in site.applications:
        assert host.read(f"readlink {LINK}") == f"../{OLD}"
        site.healthy(f"agent@{host.name}")
    site.proven()
    site.applications[1].run(f"rm {drop_in}; systemctl daemon-reload")


def test_a_host_is_replaced_by_another_of_its_name(site: Recoveries) -> None:
    """An operator can drain a host, uninstall its programs, and then replace the host by a new
    machine with the same name. When a host is drained, its agent delivers all its lines. All lines
    of the old machine arrive, including its last line, and the new machine's lines arrive too."""
    app2 = site.applications[1]
    written = site.stop_writing(app2)["app2"]
    site.control.succeed("uninstall", "--limit", "app2")
    site.run.replace(app2)
    site.name_brokers(app2)
    app2.run(f"touch {LINES}")
    site.control.succeed("site", "--limit", f"app2,{OFFLINE}")
    site.start_writing(app2)
    site.proven()
    assert written
    assert site.say(site.offline, "audit", "skidway audit hosts")[0] == 0


def test_a_mirror_whose_disk_is_empty_is_filled_again(site: Recoveries) -> None:
    """If a mirror's disk is empty, the mirror does not begin again without permission, and site.yml
    stops and names the partition, also when it allows the deletion of topics. The operator then
    deletes each topic. After the mirror has copied the topics again, the offsets and counts are as
    before."""
    dead = "A broker's disk is dead"
    site.offline.run(
        f"systemctl stop skidway-broker; rm -rf {BROKER_DISK}.gone; "
        f"mv {BROKER_DISK} {BROKER_DISK}.gone; "
        f"install -d -o skidway-broker -g skidway-broker -m 750 {BROKER_DISK}; "
        "systemctl start skidway-broker"
    )
    play = ("site", "--limit", OFFLINE, "--tags", "broker_configure,broker_run")
    allow = ("-e", "broker_delete_topics=true", "-e", "skidway_health_retries=5")
    refused = site.control.play(*play, *allow)
    assert refused.returncode != 0
    assert f"the directory of {MIRROR_TOPIC}-0" in refused.output
    stopped: dict[str, str] = health(site.offline, "broker")["stopped_partitions"]  # type: ignore[assignment]
    topics = sorted({name.rpartition("-")[0] for name in stopped})
    assert {MIRROR_TOPIC, "dc1._skidway_audit", "_skidway_audit"} <= {*topics}
    for topic in topics:
        give(site.offline, "broker", recipe(dead, 1, {MIRROR_TOPIC: topic}))
    eventually(
        lambda: site.mirror().get("partitions", 0) >= 3 and site.mirror()["lag"] == 0,
        within_s=90, every_s=1, what="mirrored again",
    )  # fmt: skip
    site.control.succeed(*play)
    give(site.offline, "audit", recipe(dead, 2))
    site.healthy("broker@off")
    site.proven(site.applications[1])


BROKER_DISK = "/var/lib/skidway/broker"
SWAP = (
    f"systemctl stop skidway-broker; mv {BROKER_DISK} {BROKER_DISK}.{{old}}; "
    f"mv {BROKER_DISK}.{{new}} {BROKER_DISK}; systemctl start skidway-broker"
)


def keep_a_copy(site: Recoveries) -> None:
    """Stops the broker of the mirror's source, copies the broker's disk, and starts the broker
    again."""
    site.source.run(
        f"systemctl stop skidway-broker; rm -rf {BROKER_DISK}.copy; "
        f"cp -a {BROKER_DISK} {BROKER_DISK}.copy; systemctl start skidway-broker"
    )
    site.healthy("broker@dc1")


def agents(site: Recoveries, what: str) -> None:
    """Runs `systemctl stop` or `systemctl start` (`what` says which) for the agent on each
    application host."""
    for host in site.applications:
        host.run(f"systemctl {what} skidway-agent")


def alter(site: Recoveries, topic: str, cluster: str, *settings: str) -> None:
    """Runs `skidway topics alter` for one topic of one cluster, with the given settings."""
    words = " ".join(f"--topic-config {each}" for each in settings)
    command = f"skidway topics alter {topic} {words} --bootstrap-server {cluster}-broker:9092"
    status, said = site.say(site.source, "broker", command)
    assert status == 0, said
