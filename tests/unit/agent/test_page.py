"""docs/agent.md agrees with the settings of the agent, and its examples are configurations that
work."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
import yaml

from skidway import settings
from skidway.agent.formats import catalog
from skidway.agent.settings import AgentSettings
from skidway.agent.validation.checks import check_settings
from skidway.errors import ConfigurationRefused
from support import agent_page

PAGE = agent_page.PAGE.read_text()
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


def test_the_tables_list_every_setting() -> None:
    """The tables of docs/agent.md are equal to those that `make docs-agent` generates from the
    settings classes."""
    assert agent_page.updated(PAGE) == PAGE


def test_the_page_has_examples() -> None:
    """docs/agent.md has examples that begin with the key `sources`."""
    assert EXAMPLES


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_are_accepted(number: int, tmp_path: Path) -> None:
    """The agent accepts every example in docs/agent.md that begins with the key `sources`."""
    assert load(EXAMPLES[number], tmp_path).sources


def test_the_manifest_for_kubernetes_has_settings_that_work(tmp_path: Path) -> None:
    """The manifest in docs/kubernetes.md is YAML. The agent accepts the configuration in the
    manifest. The manifest defines each volume that its containers mount."""
    page = agent_page.PAGE.with_name("kubernetes.md").read_text()
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    config, daemons = yaml.safe_load_all(text)
    file = tmp_path / "agent.yml"
    file.write_text(config["data"]["agent.yml"])
    check_settings(settings.load(AgentSettings, file))
    pod = daemons["spec"]["template"]["spec"]
    agent, labels = pod["containers"]
    volumes = {each["name"] for each in pod["volumes"]}
    assert {each["name"] for each in agent["volumeMounts"]} == volumes
    assert {each["name"] for each in labels["volumeMounts"]} <= volumes
    assert agent["args"][:3] == ["skidway", "agent", "run"]


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
