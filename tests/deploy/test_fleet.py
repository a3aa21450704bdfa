"""Three bare hosts become a running fleet, which is then upgraded and survives failures.

The hosts run Debian 12 with systemd, and are reached by ssh. The tests run the playbooks of our
Ansible collection as an operator does, and use nothing else to install and upgrade programs. The
lines come from auth.log (sshd and sudo), from syslog (the journal, which rsyslog writes to this
file) and from access.log (nginx). Each test continues where the previous test ended. No later test
depends on a test with the mark `aside`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.fleet import BROKEN, NEXT, OLD, PRESS, SCRIPTS, Fleet
from support.fleet_inventory import OUTPUT, SERVER, SOURCES
from support.fleet_prometheus import PrometheusOnHost
from support.fleet_verdict import loaded_to_the_end, pressed_once
from support.hosts import Host
from support.processes import eventually
from support.promises import promise

pytestmark = pytest.mark.deploy

SERVICES = [
    "skidway-zookeeper",
    "skidway-broker",
    "skidway-registry",
    "skidway-audit",
    "skidway-audit-count@dc1",
]
MASTERS = "/etc/skidway/audit.master.keys"
TEXTFILE = "/var/lib/skidway/loader/skidway_load.prom"


def show(host: Host, unit: str, *names: str) -> dict[str, str]:
    """Returns the values of the properties `names` of a systemd unit on the host, by the property's
    name."""
    asked = " ".join(f"--property={name}" for name in names)
    return dict(
        line.split("=", 1) for line in host.read(f"systemctl show {unit} {asked}").splitlines()
    )


@pytest.mark.aside
def test_before_anything_is_installed_a_check_says_what_would_change(fleet: Fleet) -> None:
    """On bare hosts, `site.yml --check --diff` succeeds, shows what it would change, and changes
    nothing."""
    played = fleet.control.succeed("site", "--check", "--diff")
    assert all(counts["changed"] for counts in played.recap.values())
    assert "+" in played.output
    for host in fleet.run.hosts.values():
        assert not host.read("ls -d /opt/skidway /etc/skidway /var/lib/skidway 2>/dev/null || :")


def test_one_playbook_brings_everything_up(fleet: Fleet) -> None:
    """On hosts without internet access, site.yml installs, configures and starts every program. It
    enables the agents, and the timers for loads and recounts, for the next boot. Ansible prints no
    warning."""
    assert "[WARNING]" not in fleet.control.succeed("site").output
    for host in fleet.applications:
        assert fleet.versions(host) == {"agent": OLD}
        assert host.read("systemctl is-active skidway-agent") == "active"
        assert host.read("systemctl is-enabled skidway-agent") == "enabled"
    running = fleet.server.read(f"systemctl is-active {' '.join(SERVICES)}").split()
    assert running == ["active"] * len(SERVICES)
    for timer in ("skidway-loader.timer", "skidway-recount.timer"):
        assert fleet.server.read(f"systemctl is-enabled {timer}") == "enabled"
        assert timer in fleet.server.read("systemctl list-timers --no-pager")
    assert not fleet.server.read("systemctl --failed --no-legend")


def test_an_agent_is_held_by_its_limits(fleet: Fleet) -> None:
    """systemd has the inventory's limits for the agent. The agent's process runs as its own user
    and has no privileges. It cannot write to a log, and can write to its state directory."""
    host = fleet.applications[0]
    assert show(
        host, "skidway-agent", "CPUQuotaPerSecUSec", "MemoryHigh", "MemoryMax", "TasksMax"
    ) == {
        "CPUQuotaPerSecUSec": "500ms",
        "MemoryHigh": str(300 << 20),
        "MemoryMax": str(400 << 20),
        "TasksMax": "64",
    }  # fmt: skip
    pid = show(host, "skidway-agent", "MainPID")["MainPID"]
    status = host.read(f"cat /proc/{pid}/status")
    assert "NoNewPrivs:\t1" in status
    assert "CapEff:\t0000000000000000" in status
    assert host.read(f"stat --format=%U /proc/{pid}") == "skidway-agent"
    inside = f"nsenter --mount --target {pid}"
    refused = host.run(f"{inside} touch /var/log/nginx/access.log", check=False)
    assert "Read-only file system" in refused.stderr
    host.run(f"{inside} test -w /var/lib/skidway/agent")


@pytest.mark.aside
def test_a_second_run_changes_nothing(fleet: Fleet) -> None:
    """A second run of site.yml changes nothing, and `--check --diff` predicts no change."""
    again = fleet.control.succeed("site")
    assert {name: counts["changed"] for name, counts in again.recap.items()} == dict.fromkeys(
        again.recap, 0
    ), again.changed
    # The run above has already shown that nothing changes on the server, so this check is limited
    # to the agents.
    checked = fleet.control.succeed("site", "--check", "--diff", "--limit", "agents")
    assert not checked.changed


def test_lines_of_real_services_become_rows_and_are_complete(fleet: Fleet) -> None:
    """After a load that systemd runs, as the timer starts it at night, the lines of sshd, the
    journal and nginx are rows. Every line is one row, and the rows are in order. The audit reports
    both hosts as complete in every topic and every tier (agent, broker and HDFS)."""
    fleet.start_press("first")
    for host in fleet.applications:
        fleet.pressed(host, more_than=100)
    last = fleet.stop_press()
    loaded_to_the_end(fleet)
    pressed_once(fleet, "first", last)


@pytest.mark.aside
def test_each_program_has_its_own_key_and_no_other(fleet: Fleet) -> None:
    """A host has the keys of its own programs only, each readable for the program's user alone. The
    master keys, from which all others can be derived, are on the audit's host, where the loader
    cannot read them."""
    on_server = {
        "/etc/skidway/audit/count-dc1.key": ("counter/broker/dc1", "root skidway-audit 640"),
        "/etc/skidway/loader/audit.key": (f"loader/dc1/{OUTPUT}", "root skidway-loader 640"),
        "/etc/skidway/loader/recount.key": (f"recount/{SERVER}", "root skidway-loader 640"),
    }
    expected = {fleet.server: on_server} | {
        host: {"/etc/skidway/agent/audit.key": (f"agent/dc1/{host.name}", "root skidway-agent 640")}
        for host in fleet.applications
    }
    for host, keys in expected.items():
        assert {*host.read("find / -xdev -name '*.key' -path '*skidway*'").split()} == {*keys}
        for path, (identity, rights) in keys.items():
            assert host.read(f"stat -c '%U %G %a' {path}") == rights
            assert host.read(f"cut -d ' ' -f 3 {path}") == identity
        masters = host.read("find / -xdev -name '*master.keys*'").split()
        assert masters == ([MASTERS] if host is fleet.server else [])
    assert fleet.server.read(f"stat -c '%U %G %a' {MASTERS}") == "root skidway-audit 640"
    assert fleet.server.run(f"sudo -u skidway-loader cat {MASTERS}", check=False).returncode != 0


@pytest.mark.aside
def test_nobody_speaks_for_another(fleet: Fleet) -> None:
    """A host publishes a seal and a heartbeat in the name of another host's agent, and a decision
    in a person's name. None of these messages is signed. The audit refuses each of them, and its
    report names them. Nor does the audit's own host decide anything without a person's key."""
    forger, robbed = fleet.applications
    listed = next(x for x in fleet.report("hosts")["hosts"] if x["host"] == robbed.name)
    agent = str(listed["agents"][0])
    python = "/opt/skidway/current/agent/bin/python"
    script = (SCRIPTS / "forge.py").read_text()
    forger.run(f"{python} - {SERVER}:9092 {agent} {robbed.name}", given=script)
    own = f"agent/dc1/{robbed.name}"
    claims = {("seal", own), ("heartbeat", own), ("retirement", "person/mallory")}
    eventually(lambda: refused(fleet) == claims, within_s=30, what="refused")
    assert "are refused: unsigned" in fleet.audit("report")[1]
    assert fleet.audit("hosts")[0] == 0
    status, said = fleet.audit("retire cluster dc1 --reason 'not mine'")
    assert (status, "keys person" in said) == (2, True), said


def refused(fleet: Fleet) -> set[tuple[str, str]]:
    """Returns the kind of each refused message, and in whose name it was."""
    return {(x["kind"], x["claimed"]) for x in fleet.report("report")["refused"]}


def test_prometheus_watches_the_fleet(fleet: Fleet) -> None:
    """site.yml adds rules and targets to the Prometheus of the group `monitoring`. The playbook
    names the programs that this Prometheus cannot reach. When the settings of these programs are
    changed so that the programs serve metrics to other hosts, every target answers, and no rule
    fails. A second run of the playbook changes nothing."""
    watched = ["--limit", "monitoring", "--tags", "monitoring_configure"]
    tags = "agent_configure,agent_run,monitoring_configure"
    opening = ["--limit", "agents:monitoring", "--tags", tags]
    prometheus = PrometheusOnHost(fleet.server)
    prometheus.start()
    groups = fleet.inventory["all"]["children"]
    groups["monitoring"] = {"hosts": {SERVER: {}}}
    fleet.control.write(fleet.inventory)
    said = fleet.control.succeed("site", *watched).output
    assert "server cannot scrape 2 of the programs agent" in " ".join(said.split())
    eventually(lambda: prometheus.up() == on_the_server(1), within_s=90, what="targets answer")

    agents = groups["agents"]["vars"]
    opened = {**agents["agent_settings"], "metrics.listener": "0.0.0.0:9101"}
    groups["agents"]["vars"] = {**agents, "agent_settings": opened}
    fleet.control.write(fleet.inventory)
    fleet.control.succeed("site", *opening)
    everything = on_the_server(1) | {
        ("skidway-agent", f"{host.name}:9101"): 1 for host in fleet.applications
    }
    eventually(lambda: prometheus.up() == everything, within_s=90, what="agents answer")
    assert prometheus.rules_that_fail() == []
    assert not fleet.control.succeed("site", *watched).changed


def test_an_alert_names_the_agent_that_is_down(fleet: Fleet) -> None:
    """If an agent stops, Prometheus has the pending alert SkidwayAgentDown with the name of the
    host. When the agent runs again, the alert disappears. The test does not wait until the alert
    fires."""
    host, prometheus = fleet.applications[1], PrometheusOnHost(fleet.server)
    host.run("systemctl stop skidway-agent")
    waits = {("SkidwayAgentDown", f"{host.name}:9101")}
    eventually(lambda: prometheus.alerts("pending") >= waits, within_s=90, what="the alert")
    host.run("systemctl start skidway-agent")
    eventually(lambda: not prometheus.alerts() & waits, within_s=90, what="no alert")


def on_the_server(up: int) -> dict[tuple[str, str], int]:
    """Returns the expected value of the metric `up` of each Prometheus target on the server. A
    target is given by the pair (job, instance). The value is the parameter `up`: 1 if Prometheus
    can scrape the targets, and 0 if not."""
    ports = {
        "zookeeper": 9106,
        "broker": 9102,
        "registry": 9103,
        "audit": 9104,
        "audit-count": 9114,
    }
    return {(f"skidway-{name}", f"{SERVER}:{port}"): up for name, port in ports.items()}


@promise("6 two ways")
def test_the_night_s_recount_is_told_to_the_audit(fleet: Fleet) -> None:
    """The nightly recount counts the rows in the loader's files again, and reports to the audit
    that the rows agree with the counts. If a file with rows is missing, the recount's unit fails
    and names the file, and `audit report` exits with status 1. After the file has been restored,
    the next recount succeeds."""
    again = "systemctl start skidway-recount.service"
    fleet.server.run(again, within_s=300)
    eventually(lambda: recounted(fleet) == {(OUTPUT, "agrees")}, within_s=30, what="told")
    file = fleet.server.read(f"ls {OUTPUT}/nginx/*/*/part-*.parquet | head -n 1")
    fleet.server.run(f"mv {file} /var/tmp/gone")
    assert fleet.server.run(again, check=False, within_s=300).returncode != 0
    assert "skidway-recount.service" in fleet.server.read("systemctl --failed --no-legend")
    log = "journalctl --namespace=skidway -u skidway-recount --output=cat --no-pager"
    assert f"{file.removeprefix(f'{OUTPUT}/')} is gone" in fleet.server.read(log)
    eventually(lambda: (OUTPUT, "differs") in recounted(fleet), within_s=30, what="told")
    assert fleet.audit("report", "--topic", "nginx")[0] == 1
    fleet.server.run(f"mv /var/tmp/gone {file}")
    fleet.server.run(again, within_s=300)
    assert not fleet.server.read("systemctl --failed --no-legend")


@pytest.mark.aside
def test_a_site_need_not_have_a_nightly_recount(fleet: Fleet) -> None:
    """`loader_recount: false` in the inventory stops and disables the recount's timer. Without this
    setting, site.yml starts and enables the timer again."""
    played = ["--limit", "loaders", "--tags", "loader_run"]
    look = "systemctl is-active {0}; systemctl is-enabled {0}".format("skidway-recount.timer")
    fleet.control.succeed("site", *played, "-e", '{"loader_recount": false}')
    assert fleet.server.run(look, check=False).stdout.split() == ["inactive", "disabled"]
    fleet.control.succeed("site", *played)
    assert fleet.server.run(look, check=False).stdout.split() == ["active", "enabled"]


@pytest.mark.aside
def test_loads_may_follow_each_other_all_day(fleet: Fleet) -> None:
    """If the inventory contains `loader_every`, site.yml disables the loader's timer and starts a
    service that keeps running. Lines then become rows without anyone starting a load. If the
    variable is removed, site.yml stops the service, which ends without an error, and enables the
    timer again."""
    played = ["--limit", "loaders", "--tags", "loader_configure,loader_run"]
    stays, timer = "skidway-loader-resident.service", "skidway-loader.timer"
    state = "systemctl is-active {0}; systemctl is-enabled {0}"
    every = ["-e", '{"loader_every": "5s"}']
    fleet.control.succeed("site", *played, *every)
    assert fleet.server.read(state.format(stays)).split() == ["active", "enabled"]
    assert fleet.server.run(state.format(timer), check=False).stdout.split() == [
        "inactive", "disabled",
    ]  # fmt: skip
    pid = show(fleet.server, stays, "MainPID")["MainPID"]
    assert "load run --every 5s" in fleet.server.read(f"tr '\\0' ' ' </proc/{pid}/cmdline")
    assert not fleet.control.succeed("site", *played, *every).changed
    assert show(fleet.server, stays, "MainPID")["MainPID"] == pid
    settings = fleet.server.read("cat /etc/skidway/loader.yml")
    assert "collector.url: http://127.0.0.1:8088" in settings

    before = {host.name: fleet.lines(host) for host in fleet.applications}
    fleet.start_press("all-day")
    for host in fleet.applications:
        fleet.pressed(host, more_than=before[host.name] + 100)
    last = fleet.stop_press()
    fleet.wait_for_verdict("agent,broker,hdfs")

    fleet.control.succeed("site", *played)
    assert fleet.server.read(state.format(timer)).split() == ["active", "enabled"]
    assert fleet.server.run(state.format(stays), check=False).stdout.split() == [
        "inactive", "disabled",
    ]  # fmt: skip
    assert show(fleet.server, stays, "Result", "ExecMainStatus") == {
        "Result": "success",
        "ExecMainStatus": "0",
    }
    pressed_once(fleet, "all-day", last)


def recounted(fleet: Fleet) -> set[tuple[str, str]]:
    """Returns the pair (output, verdict) of each recount that was reported to the audit, for all
    topics."""
    topics = fleet.report("report")["topics"]
    return {(x["output"], x["verdict"]) for topic in topics for x in topic["recounts"]}


@pytest.mark.aside
def test_a_refused_configuration_leaves_the_running_one_alone(fleet: Fleet) -> None:
    """If `skidway agent validate` refuses a new configuration, the play stops and shows the error.
    The old configuration file stays in place, and the agent continues to run."""
    host = fleet.applications[0]
    look = "sha256sum /etc/skidway/agent.yml; systemctl show --property=MainPID skidway-agent"
    before = host.read(look)
    broken = [{**SOURCES[0], "parser": {"type": "regex", "pattern": "(["}}]
    fleet.change(agent_sources=broken)
    played = fleet.control.play("site", "--limit", "agents")
    assert played.returncode != 0
    assert "pattern" in played.output
    assert host.read(look) == before
    fleet.control.write(fleet.inventory)


@pytest.mark.aside
def test_a_running_agent_takes_changed_settings(fleet: Fleet) -> None:
    """If the agents can take changed settings by a reload, site.yml reloads the agents, and their
    processes continue. A second run changes nothing. If a setting takes effect only at a start,
    site.yml restarts the agents."""
    host = fleet.applications[0]
    look = "systemctl show --property=MainPID skidway-agent"
    own = fleet.inventory["all"]["children"]["agents"]["vars"]["agent_settings"]
    before = host.read(look)
    fleet.change(agent_settings={**own, "linger.ms": 20})
    assert "linger.ms changed" in fleet.control.succeed("site", "--limit", "agents", "-v").output
    assert not fleet.control.succeed("site", "--limit", "agents").changed
    assert host.read(look) == before
    fleet.change(agent_settings={**own, "close.inactive.ms": 60_000})
    fleet.control.succeed("site", "--limit", "agents")
    assert host.read(look) != before
    fleet.control.write(fleet.inventory)
    fleet.control.succeed("site", "--limit", "agents")


def test_an_upgrade_goes_through_the_whole_fleet(fleet: Fleet) -> None:
    """upgrade.yml upgrades every program of the fleet to the next version, while lines are written
    and just after nginx's log was rotated. The timers are active afterwards."""
    fleet.start_press("second-on-the-way")
    fleet.inventory["all"]["vars"]["skidway_version"] = NEXT
    fleet.control.write(fleet.inventory)
    for host in fleet.applications:
        host.run("logrotate --force /etc/logrotate.d/nginx")
    fleet.control.succeed("upgrade")
    for host in fleet.run.hosts.values():
        assert set(fleet.versions(host).values()) == {NEXT}
    for timer in ("skidway-loader.timer", "skidway-recount.timer"):
        assert fleet.server.read(f"systemctl is-active {timer}") == "active"
    for host in fleet.applications:
        command = host.read(
            "tr '\\0' ' ' </proc/$(systemctl show -P MainPID skidway-agent)/cmdline"
        )
        assert f"/opt/skidway/{NEXT}/bin/python" in command
        assert host.read(f"systemctl is-active {PRESS}") == "active"


@pytest.mark.aside
def test_a_version_that_cannot_run_is_rolled_back(fleet: Fleet) -> None:
    """If the agent of the new version does not start, upgrade.yml stops after the first wave and
    reports the failure. The first wave is the first group of hosts, here one host. The playbook
    rolls this host back to the old version, and does not change the other hosts."""
    before = fleet.inventory["all"]["vars"]["skidway_version"]
    played = fleet.control.play("upgrade", "--limit", "agents", "-e", f"skidway_version={BROKEN}")
    assert played.returncode != 0
    assert "this version cannot run" in played.output
    assert "is back at the version before" in played.output
    for host in fleet.applications:
        assert fleet.versions(host) == {"agent": before}
        assert host.read("systemctl is-active skidway-agent") == "active"
    assert BROKEN not in fleet.applications[1].read("ls /opt/skidway")


@pytest.mark.aside
def test_a_rolling_restart_restarts_every_program(fleet: Fleet) -> None:
    """rolling_restart.yml succeeds, and afterwards every program has been restarted."""
    where = [(fleet.server, unit) for unit in SERVICES]
    where += [(host, "skidway-agent") for host in fleet.applications]
    before = [show(host, unit, "MainPID")["MainPID"] for host, unit in where]
    fleet.control.succeed("rolling_restart")
    after = [show(host, unit, "MainPID")["MainPID"] for host, unit in where]
    assert not set(zip(where, before, strict=True)) & set(zip(where, after, strict=True))


def test_no_line_was_lost_and_none_doubled_on_the_way(fleet: Fleet) -> None:
    """Each line that was written during the upgrade, the rollback, the restarts and the log
    rotation is exactly one row."""
    last = fleet.stop_press()
    loaded_to_the_end(fleet)
    pressed_once(fleet, "second-on-the-way", last)


@pytest.mark.aside
def test_a_failed_load_is_seen(fleet: Fleet) -> None:
    """After a failed load, the loader's unit is in the failed state, and the metrics show a failed
    run. After the next successful load, the unit is no longer in the failed state, and the metrics
    show no failed run. Only a successful load changes the time of the last success."""
    good = metrics(fleet)
    assert good["skidway_loader_last_run_exit_status"] == 0
    fleet.server.run("systemctl stop skidway-registry skidway-broker")
    failed = fleet.server.run("systemctl start skidway-loader.service", check=False, within_s=300)
    fleet.server.run("systemctl start skidway-broker skidway-registry")
    assert failed.returncode != 0
    assert "skidway-loader.service" in fleet.server.read("systemctl --failed --no-legend")
    bad = metrics(fleet)
    assert bad["skidway_loader_last_run_exit_status"] == 3
    assert (
        bad["skidway_loader_last_run_end_timestamp_seconds"]
        > good["skidway_loader_last_run_end_timestamp_seconds"]
    )
    success = "skidway_loader_last_success_timestamp_seconds"
    assert bad[success] == good[success]
    fleet.load()
    assert not fleet.server.read("systemctl --failed --no-legend")
    healed = metrics(fleet)
    assert healed["skidway_loader_last_run_exit_status"] == 0
    assert healed[success] > good[success]


def metrics(fleet: Fleet) -> dict[str, float]:
    """Returns the values of the metrics in the text file that the loader writes for Prometheus, by
    the metric's name."""
    lines = fleet.server.read(f"cat {TEXTFILE}").splitlines()
    return {name: float(value) for name, value in (x.split() for x in lines if x[0] != "#")}


@pytest.mark.aside
def test_a_host_that_is_off_is_named_and_one_that_was_taken_away_is_retired(fleet: Fleet) -> None:
    """`skidway audit hosts` names a host that was shut down. If a host is removed from the
    inventory, the audit's list of hosts keeps it as retired, and no verdict waits for it. If the
    host is added to the inventory again, the audit expects it again."""
    gone, stays = fleet.applications[1], fleet.applications[0]
    gone.power_off()
    eventually(lambda: fleet.audit("hosts")[0] == 1, within_s=180, what="audit sees it")
    said = fleet.audit("hosts")[1]
    assert "1 of 2 expected hosts" in said
    assert f"silent: {gone.name}" in said

    del fleet.inventory["all"]["children"]["agents"]["hosts"][gone.name]
    fleet.control.write(fleet.inventory)
    fleet.control.succeed("site", "--limit", "audit", "--tags", "audit_roster")
    assert "retired: true" in fleet.server.read("cat /etc/skidway/roster.yml")
    eventually(lambda: fleet.audit("hosts")[0] == 0, within_s=180, what="nobody waits for it")
    states = {each["host"]: each["state"] for each in fleet.report("hosts")["hosts"]}
    assert states == {gone.name: "retired", stays.name: "reporting"}

    fleet.inventory["all"]["children"]["agents"]["hosts"][gone.name] = {}
    fleet.control.write(fleet.inventory)
    gone.boot()
    gone.wait()
    fleet.control.succeed("site", "--limit", "audit", "--tags", "audit_roster")
    assert "retired: true" not in fleet.server.read("cat /etc/skidway/roster.yml")
    eventually(lambda: fleet.audit("hosts")[0] == 0, within_s=180, what="it reports again")


@pytest.mark.aside
def test_a_topic_is_deleted_only_while_the_inventory_allows_it(fleet: Fleet) -> None:
    """Brokers that the roles installed delete no topic. With `broker_delete_topics` they do, until
    the playbook runs without it again."""
    skidway = "/opt/skidway/current/broker/bin/skidway topics"
    address = f"--bootstrap-server {SERVER}:9092"
    restart = ("site", "--tags", "broker_configure,broker_run")
    for topic in ("spare1", "spare2"):
        fleet.server.run(f"{skidway} create {topic} {address}")
    delete = f"{skidway} delete {{}} --yes {address}"
    refused = fleet.server.run(delete.format("spare1"), check=False)
    assert refused.returncode != 0
    assert "delete.topic.enable is false" in refused.stdout + refused.stderr
    fleet.control.succeed(*restart, "-e", "broker_delete_topics=true")
    fleet.server.run(delete.format("spare1"))
    fleet.control.succeed(*restart)
    assert fleet.server.run(delete.format("spare2"), check=False).returncode != 0
    assert fleet.server.read(f"{skidway} list {address}").split().count("spare2") == 1


@pytest.mark.aside
def test_a_user_of_a_program_does_not_choose_what_root_gives_away(fleet: Fleet) -> None:
    """A new log directory in a place where the broker's user may put links is refused, with the
    reason. Neither the place to which such a link leads nor the configuration changes. The parents
    of the directories that the roles made belong to root."""
    assert fleet.server.read(f"stat -c '%U %a' {OUTPUT} {Path(OUTPUT).parent}").split("\n") == [
        "skidway-loader 750", "root 755",
    ]  # fmt: skip
    fleet.server.run("install -d -o skidway-broker /srv/disks; mkdir -m 700 /srv/precious")
    fleet.server.run("sudo -u skidway-broker ln -s /srv/precious /srv/disks/new")
    look = "stat -c '%U %a' /srv/precious; sha256sum /etc/skidway/broker.yml"
    before = fleet.server.read(look)
    played = fleet.control.play(
        "site", "--limit", SERVER, "--tags", "broker_configure",
        "-e", json.dumps({"broker_log_dirs": ["/var/lib/skidway/broker", "/srv/disks/new"]}),
    )  # fmt: skip
    assert played.returncode != 0
    assert "/srv/disks belongs to skidway-broker, who could put a link" in played.output
    assert fleet.server.read(look) == before
    fleet.server.run("rm -r /srv/disks /srv/precious")


def test_uninstalling_leaves_the_data_and_nothing_else(fleet: Fleet) -> None:
    """uninstall.yml drains each agent. Then it removes programs, units, configuration and limits,
    but neither data nor the audit's master keys, without which nobody could check the data.
    Prometheus continues to run without rules and targets of Skidway."""
    data = {
        fleet.server: f"ls {OUTPUT}/_skidway/*/*.json /var/lib/skidway/broker/nginx-0/*.log",
        **dict.fromkeys(fleet.applications, "ls /var/lib/skidway/agent/*.db"),
    }
    before = {host: host.read(command) for host, command in data.items()}
    masters = fleet.server.read(f"cat {MASTERS}")
    played = fleet.control.succeed("uninstall")
    assert "could not be drained" not in played.output
    assert {host: host.read(command) for host, command in data.items()} == before
    find = "find / -xdev -name '*skidway*' -not -path '/proc/*' -not -path '/run/*' -print -prune"
    for host in fleet.run.hosts.values():
        left = set(host.read(find).splitlines())
        assert left <= {"/var/lib/skidway", "/var/log/skidway", f"{OUTPUT}/_skidway"}, left
        assert not host.read("systemctl list-units --all --no-legend 'skidway*'")
        assert not host.read("pgrep --list-full -f '[/]opt/skidway' || :")
    assert not fleet.server.run(
        "grep -i skidway /etc/prometheus/prometheus.yml", check=False
    ).stdout
    assert "app1" in fleet.server.read("cat /var/lib/skidway/roster.yml")
    assert fleet.server.read("cat /var/lib/skidway/audit.master.keys") == masters
    prometheus = PrometheusOnHost(fleet.server)
    eventually(lambda: prometheus.targets() == set(), within_s=90, what="no target")
