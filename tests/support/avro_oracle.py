"""Asks Apache Avro's own Java implementation about schemas. The jars of this implementation are
part of pyspark.

Janino, a small Java compiler, is among these jars. It compiles and runs AvroOracle.java, so the
machine needs only a Java runtime, and no javac.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Any

from support import jvm

SOURCE = Path(__file__).parents[1] / "conformance" / "avro" / "AvroOracle.java"
JARS = ("avro-1", "jackson-", "slf4j-api", "janino", "commons-compiler")
OPTIONS = ("-Xmx512m", *jvm.BRIEF)
TIMEOUT_S = 120


def ask(questions: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Returns the answers to the questions in the form that AvroOracle.java describes. A single JVM
    answers all questions."""
    spec = util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "jars"
    jars = [str(jar) for jar in folder.glob("*.jar") if jar.name.startswith(JARS)]
    compiler = "org.codehaus.janino.SimpleCompiler"
    done = subprocess.run(
        [jvm.command(), *OPTIONS, "-cp", ":".join(jars), compiler, SOURCE, "AvroOracle"],
        input="".join(json.dumps(each) + "\n" for each in questions).encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions)
    return answers
