"""docs/agent.md agrees with the settings of the agent, and its examples are configurations that
work."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from skidway import settings
from skidway.agent.formats import catalog
from skidway.agent.settings import AgentSettings
from skidway.agent.validation.checks import check_settings
from skidway.errors import ConfigurationRefused
from support.other_users import as_user
from support.processes import skidway

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "agent.md").read_text()
EXAMPLES = [
    textwrap.dedent(each)
    for each in re.findall(r"(?:^ {4}.*\n)+", PAGE, re.M)
    if each.startswith("    sources:\n      -")
]
REST = """
bootstrap.servers: 127.0.0.1:9092
schema.registry.url: http://127.0.0.1:8081
state.dir: /var/lib/skidway/agent
"""


def load(text: str, folder: Path) -> AgentSettings:
    file = folder / "agent.yml"
    file.write_text(REST + text)
    loaded = settings.load(AgentSettings, file)
    check_settings(catalog.applied(loaded))
    return loaded


def test_the_page_has_examples() -> None:
    """docs/agent.md has examples that begin with the key `sources`."""
    assert EXAMPLES


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_are_accepted(number: int, tmp_path: Path) -> None:
    """The agent accepts every example in docs/agent.md that begins with the key `sources`."""
    assert load(EXAMPLES[number], tmp_path).sources


def manifest() -> dict[str, Any]:
    """Returns the objects of the manifest in docs/kubernetes.md, by their kinds."""
    page = (DOCS / "kubernetes.md").read_text()
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def manifest_settings(folder: Path) -> AgentSettings:
    """Loads the settings of the agent in the manifest, with the options of its container."""
    file = folder / "agent.yml"
    file.write_text(manifest()["ConfigMap"]["data"]["agent.yml"])
    args = manifest()["DaemonSet"]["spec"]["template"]["spec"]["containers"][0]["args"]
    given = [
        value.replace("$(NODE_NAME)", "node-1").replace("$(POD_IP)", "10.1.2.3")
        for option, value in pairwise(args)
        if option == "--set"
    ]
    return settings.load(AgentSettings, file, given)


def test_the_manifest_for_kubernetes_has_settings_that_work(tmp_path: Path) -> None:
    """The manifest in docs/kubernetes.md is YAML. The agent accepts the configuration in the
    manifest, and serves metrics at the pod's address alone. The manifest defines each volume that
    its containers mount."""
    made = manifest_settings(tmp_path)
    check_settings(made)
    assert made.metrics_listener == "10.1.2.3:9101"
    pod = manifest()["DaemonSet"]["spec"]["template"]["spec"]
    agent, labels = pod["containers"]
    volumes = {each["name"] for each in pod["volumes"]}
    mounted = {each["name"] for x in (agent, labels) for each in x["volumeMounts"]}
    assert mounted == volumes
    assert agent["args"][:3] == ["skidway", "agent", "run"]
    logs = next(each for each in agent["volumeMounts"] if each["name"] == "logs")
    assert logs["readOnly"]
    assert all(x.startswith(logs["mountPath"]) for each in made.sources for x in each.paths)


def test_the_manifest_for_kubernetes_has_the_least_rights() -> None:
    """No container of the manifest runs as root but the one that gives the state's directory to the
    agent's user, which has no other capability. Nobody can change the images' files or get more
    rights. Only the container that asks for labels has the token, which may only list pods."""
    pod = manifest()["DaemonSet"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for each in pod["initContainers"] + pod["containers"]:
        own = each["securityContext"]
        assert own["readOnlyRootFilesystem"]
        assert own["allowPrivilegeEscalation"] is False
        assert own["capabilities"]["drop"] == ["ALL"]
    (state,) = pod["initContainers"]
    assert state["securityContext"]["capabilities"]["add"] == ["CHOWN"]
    user = pod["securityContext"]["runAsUser"]
    assert user
    assert state["command"] == ["chown", f"{user}:{user}", "/var/lib/skidway/agent"]
    for each in pod["containers"]:
        assert each["securityContext"].keys() & {"runAsUser", "runAsNonRoot"} == set()
        assert "add" not in each["securityContext"]["capabilities"]
    assert manifest()["ServiceAccount"]["automountServiceAccountToken"] is False
    assert pod["automountServiceAccountToken"] is False
    having = [x["name"] for x in pod["containers"] if "token" in str(x["volumeMounts"])]
    assert having == ["labels"]
    assert manifest()["ClusterRole"]["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    ]


@pytest.mark.root
def test_the_rights_of_the_manifest_are_enough(request: pytest.FixtureRequest) -> None:
    """With the user and the group of the manifest, and without capabilities, the agent reads log
    files as kubelet makes them (root's, mode 0640), and keeps its state."""
    before = os.umask(0o022)  # a command that ran in this process may have narrowed it
    request.addfinalizer(lambda: os.umask(before))
    pod = manifest()["DaemonSet"]["spec"]["template"]["spec"]
    user = pod["securityContext"]["runAsUser"]
    group = pod["containers"][0]["securityContext"]["runAsGroup"]
    with TemporaryDirectory() as name:
        folder, state = Path(name), Path(name, "state")
        folder.chmod(0o755)
        state.mkdir()
        os.chown(state, user, user)
        log = folder / "pods" / "ns_pod_1" / "app" / "0.log"
        log.parent.mkdir(parents=True)
        log.write_text("2026-01-02T03:04:05.000000001Z stdout F hello\n")
        log.chmod(0o640)
        config = folder / "agent.yml"
        text = manifest()["ConfigMap"]["data"]["agent.yml"]
        text = text.replace("/var/log/pods", f"{folder}/pods")
        text = text.replace("/var/lib/skidway/agent", str(state))
        config.write_text(text)
        for words in (["test", str(log)], ["validate"]):
            done = subprocess.run(
                ["setpriv", f"--reuid={user}", f"--regid={group}", f"--groups={user}",
                 "--bounding-set=-all", "--no-new-privs",
                 *skidway("agent", *words, "--config", str(config), "--set", "host.name=node-1")],
                capture_output=True, text=True, check=False, timeout=60,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
            assert ("all of 1 record fit" if "validate" in words else "hello") in done.stdout
        assert as_user(user, [group], lambda: os.access(state, os.W_OK))


@pytest.mark.parametrize(
    ("multiline", "sentence"),
    [
        ("{type: start}", "multiline.pattern is missing: type start needs one"),
        ("{type: java, pattern: x}", "multiline.pattern does not belong to type java"),
        ("{type: end, pattern: '('}", "multiline.pattern '(': "),
        ("{type: cobol}", "multiline.type"),
        ("{type: java, max.lines: 0}", "max.lines"),
    ],
)
def test_multiline_settings_that_cannot_work_are_refused(
    multiline: str, sentence: str, tmp_path: Path
) -> None:
    """If settings of `multiline` cannot work, they are refused with a sentence that names the
    key."""
    text = f"sources: [{{topic: a, paths: [/a], multiline: {multiline}}}]"
    with pytest.raises(ConfigurationRefused, match=re.escape(sentence)):
        load(text, tmp_path)
