"""A file of sources.dir says the strangest things, and is loaded or refused."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from skidway.agent.formats import catalog
from skidway.agent.settings import AgentSettings, SourceSettings
from skidway.agent.sources_dir import files_in, read_file
from skidway.agent.validation.checks import check_settings
from skidway.errors import ConfigurationRefused
from skidway.settings.spec import Kind, specs
from support.randomness import share_of

CPU_S_MAX = 10
"""Far more than any file takes, and far less than one that takes quadratic time."""

SECTIONS = ("parser", "multiline", "timestamp", "labels")
KEYS = [
    *specs(SourceSettings),
    *(
        f"{name}.{key}"
        for name in SECTIONS
        for key in specs(specs(SourceSettings)[name].shape.type)
        if specs(SourceSettings)[name].shape.kind is Kind.SECTION
    ),
]
PIECES = (
    "[", "]", "{", "}", "(", ")", ",", "*", "**/", "/", "?", "%", "%m", "%d", "%style{", "%(", "a",
    "${a:-", "{a,", "(?P<a>", "(?:a*)*", "%(asctime)s ", "{message:", "not ", 'm = "a" and ', "\\",
    "\n", "drop m = 1\n", "[!", "[a-", "9", "\ud800", "\0", "\u202e", "\U0010ffff", "'", "[a]",
    " ", "{a}", "%X{a} ", "%Y",
)  # fmt: skip
COUNTS = st.sampled_from([1, 2, 50, 1_000, 8_000])
TEXTS = st.lists(st.tuples(st.sampled_from(PIECES), COUNTS), min_size=1, max_size=3).map(
    lambda pieces: "".join(piece * count for piece, count in pieces)[:66_000]
)
NUMBERS = st.sampled_from([0, -1, 1 << 31, 1 << 53, 1 << 63, 10**400, -(10**400)])
VALUES = st.one_of(
    TEXTS,
    TEXTS.map(lambda text: f"/{text}"),
    NUMBERS,
    st.sampled_from([None, True, 1e308, {}, [], ".", "/x", "raw", "regex", "log4j", "UTC"]),
    st.tuples(st.lists(TEXTS, min_size=1, max_size=3), COUNTS).map(
        lambda x: [text[:200] for text in x[0] * x[1]][:999]
    ),
    st.dictionaries(TEXTS.map(lambda text: text[:99]), TEXTS, max_size=3),
    COUNTS.map(lambda count: {f"a{number}": "x" for number in range(min(count, 999))}),
)
SOURCES = st.lists(st.tuples(st.sampled_from(KEYS), VALUES), min_size=1, max_size=3)
PARSERS = st.sampled_from([
    {}, {"parser.type": "regex", "parser.pattern": "(?P<m>.*)"},
    {"parser.type": "log4j", "parser.pattern": "%d %m"},
    {"parser.type": "python", "parser.pattern": "%(message)s"},
    {"parser.type": "csv", "parser.columns": ["m"]}, {"parser.type": "logfmt"},
    {"container": "cri"}, {"format": "spring"},
    {"multiline.type": "start", "multiline.pattern": "a"},
])  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("agent.d")


@hypothesis_settings(
    max_examples=share_of(100), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(PARSERS, SOURCES)
def test_no_file_stops_the_agent(
    folder: Path, parser: dict[str, Any], given_: list[tuple[str, Any]]
) -> None:
    """Whatever a file of sources.dir says, it is loaded or refused, soon."""
    source = {"topic": "t", "paths": ["/a"], **parser, **dict(given_)}
    # JSON is YAML, and writes each surrogate with escapes, as a file in UTF-8 can
    (folder / "a.yml").write_text(json.dumps({"sources": [source]}))
    begin = time.process_time()
    with contextlib.suppress(ConfigurationRefused):
        found = [each for file in files_in(folder) for each in read_file(file, [])[1]]
        agent = AgentSettings(
            bootstrap_servers="a:1", schema_registry_url="http://a:1", state_dir=folder,
            sources=found,
        )  # fmt: skip
        check_settings(catalog.applied(agent))
    assert time.process_time() - begin < CPU_S_MAX
