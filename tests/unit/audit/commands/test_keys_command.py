"""`skidway audit keys`, and the keys of persons, as an operator uses them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from skidway.audit.commands import publication
from skidway.audit.evidence.admission import Mode
from skidway.audit.settings import AuditSettings
from skidway.audit.signing.keys import master_keys_in, sender_keys_in
from skidway.audit.signing.signer import Signer
from skidway.audit.signing.verifier import Verifier
from skidway.cli.commands import main
from skidway.errors import UsageError
from skidway.settings import load
from support.clock import ManualClock
from support.promises import promise

Run = Callable[[str], tuple[int, str, str]]
WEB1 = "agent/dc1/web1"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Returns a function that runs `skidway audit` with settings that name the master keys."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(publication, "_home", lambda: tmp_path / "home")
    Path("audit.yml").write_text(
        "bootstrap.servers: 127.0.0.1:1\nstore.dir: store\naudit.signatures: require\n"
        "audit.master.keys.location: masters\n"
    )

    def asked(line: str) -> tuple[int, str, str]:
        status = main(["audit", *shlex.split(line), "--config", "audit.yml"])
        said = capsys.readouterr()
        return status, said.out, said.err

    return asked


def mode_of(path: str) -> int:
    return os.stat(path).st_mode & 0o777


@promise("6 signed")
def test_master_keys_are_made_replaced_and_dropped(run: Run) -> None:
    """The first `rotate` makes the master keys, in a file for their owner alone. The second adds
    the key that replaces the first one, and a third one waits until the old key is dropped. The
    last key is never dropped. A number is used once only."""
    assert run("keys rotate")[0] == 0
    first = Path("masters").read_text()
    assert (len(master_keys_in(first)), mode_of("masters")) == (1, 0o600)
    status, printed, _ = run("keys rotate")
    assert (status, "new master key 2" in printed) == (0, True)
    assert Path("masters").read_text().startswith(first), "the old key still holds"
    both = Path("masters").read_text()
    status, _, said = run("keys rotate")
    assert (status, "Drop the old one" in said) == (2, True)
    assert Path("masters").read_text() == both
    assert run("keys drop 7")[0] == 2
    assert run("keys drop 1")[0] == 0
    assert [x.number for x in master_keys_in(Path("masters").read_text())] == [2]
    status, _, said = run("keys drop 2")
    assert (status, "make the new one first" in said) == (2, True)
    run("keys rotate")
    assert [x.number for x in master_keys_in(Path("masters").read_text())] == [2, 3]
    assert mode_of("masters") == 0o600


@promise("6 signed")
@pytest.mark.parametrize(
    ("line", "identity"),
    [
        (f"keys derive {WEB1}", WEB1),
        ("keys derive loader/offline/hdfs://nn:8020/logs", "loader/offline/hdfs://nn:8020/logs"),
        ("keys person 'Ada Lovelace'", "person/Ada Lovelace"),
    ],
)
def test_a_derived_key_is_what_its_sender_reads(run: Run, line: str, identity: str) -> None:
    """What `derive` and `person` print is the file from which that sender signs: with both keys
    while a master key is replaced, and with the newest one. With --out it is written for its owner
    alone, also in place of a file that others may read."""
    run("keys rotate")
    status, once, _ = run(line)
    assert (status, run(line)[1]) == (0, once)
    run("keys rotate")
    _, printed, _ = run(line)
    assert [x.number for x in sender_keys_in(printed)] == [1, 2]
    assert printed.startswith(once)
    Path("agent.key").write_text("")
    Path("agent.key").chmod(0o644)
    status, said, _ = run(f"{line} --out agent.key")
    assert (status, identity in said) == (0, True)
    assert (Path("agent.key").read_text(), mode_of("agent.key")) == (printed, 0o600)
    signer = Signer(Path("agent.key"), lambda _: None, ManualClock())
    masters = master_keys_in(Path("masters").read_text())
    [header] = signer.sign([b"value"])
    found = Verifier(masters).verify(b"value", header)
    assert (str(found.identity), found.key, found.flaw) == (identity, 2, None)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("keys derive agent/dc1", "'agent/dc1' is no identity: agent/CLUSTER/HOST"),
        ("keys derive root/x", "'root/x' is no identity: it begins with none of agent, counter"),
        ("keys derive counter/hdfs/dc1", "is no identity: counter/TIER/CLUSTER"),
        ("keys person ''", "is no identity: person/NAME"),
        (f"keys derive {WEB1} --out no/agent.key", "no/agent.key cannot be written: No such file"),
    ],
)
def test_a_wrong_identity_is_one_sentence(run: Run, line: str, words: str) -> None:
    """A text that names no sender, or a file that cannot be written, is refused with one sentence
    and makes nothing."""
    run("keys rotate")
    status, printed, said = run(line)
    assert (status, printed, len(said.splitlines())) == (2, "", 1), said
    assert words in said


@pytest.mark.parametrize("line", ["keys derive agent/dc1/web1", "keys list", "keys drop 1"])
def test_without_master_keys_the_command_says_so(run: Run, line: str) -> None:
    """Where the master keys are missing, damaged, or not named by the settings, each verb says it
    with one sentence, and prints no key."""
    status, printed, said = run(line)
    assert (status, printed, said.count("\n")) == (2, "", 1)
    assert "The file of the master keys (masters) cannot be read: No such file" in said
    Path("masters").write_text("1 abc\n")
    assert "(masters) has a damaged key." in run(line)[2]
    Path("audit.yml").write_text("bootstrap.servers: 127.0.0.1:1\n")
    status, printed, said = run(line)
    assert (status, printed, said.count("\n")) == (78, "", 1)
    assert "audit.master.keys.location names no file" in said
    Path("audit.yml").unlink()
    assert run(line)[0] != 0


@promise("6 signed")
def test_a_person_decides_with_the_key_in_the_own_home(run: Run) -> None:
    """Under `require`, a decision needs the person's key: by default that in the home, for the
    owner alone. The name in the key is the name of who decides; another one is refused, and so is
    the key of an agent, one of another master key, or one that others may read."""
    clock = ManualClock()
    run("keys rotate")
    settings = load(AuditSettings, Path("audit.yml"))
    assert settings.mode is Mode.REQUIRE
    with pytest.raises(UsageError, match=r"takes signed messages only, but .* keys person NAME"):
        publication.person_signer(settings, None, clock)
    home = Path("home") / publication.PERSON_KEY
    home.parent.mkdir(parents=True)
    run(f"keys person ada --out {home}")
    signer, person = publication.person_signer(settings, None, clock)
    assert (signer is not None, person) == (True, "ada")
    status, _, said = run("retire hdfs --reason x --name ceo")
    assert (status, "--name ceo: the key is that of ada." in said) == (2, True)
    masters = Path("masters").read_text()
    Path("masters").unlink()
    run("keys rotate")
    with pytest.raises(UsageError, match="would refuse what person/ada signs: wrong signature"):
        publication.person_signer(settings, None, clock)
    Path("masters").write_text(masters)
    home.chmod(0o640)
    with pytest.raises(UsageError, match=r"others may read it: chmod 600"):
        publication.person_signer(settings, None, clock)
    run(f"keys derive {WEB1} --out agent.key")
    with pytest.raises(UsageError, match="is that of agent/dc1/web1, which may not sign a dec"):
        publication.person_signer(settings, Path("agent.key"), clock)
