"""Our code for Avro schemas agrees with Apache Avro's Java implementation, which Confluent's
registry uses.

For a pair of schemas, our verdict (compatible or not) and its reasons must equal those of Java. For
a single schema, the canonical text must equal that of Java. The schemas are generated from fixed
seeds; further pairs try each rule of compatibility. Intended differences are listed here, each with
its reason. A test fails if it finds a difference that is not listed, or if a listed difference
never occurs.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import util
from pathlib import Path
from random import Random
from typing import Any

import pytest

from skidway.schemas.advice.draft import Draft
from skidway.schemas.avro_schema import SchemaInvalid, named_types, parse
from skidway.schemas.canonical import canonical
from skidway.schemas.compatibility import Incompatibility, incompatibilities
from support import jvm
from support.avro_rules import RULES
from support.avro_schemas import broken, changed, made, text

pytestmark = [pytest.mark.java, pytest.mark.foreign]

PAIRS = 22_000
BROKEN = 8_000
Pair = tuple[Any, Any]
DIFFERENT = {
    "ambiguous",
    "ambiguous in a branch",
    "its own alias",
    "enum default",
    "place repeated",
    "full name first",
}
"""The names of the intended differences from Java; `_listed_refusal`, `_listed_details` and
`_without_stricter` explain them."""


def pairs() -> list[Pair]:
    """Returns pairs of schemas. In most pairs one schema is a copy of the other with one to three
    changes; in some pairs the schemas are unrelated."""
    random = Random(20_110_612)
    drawn: list[Pair] = []
    for at in range(PAIRS):
        schema = made(random)
        other = made(random) if at % 10 == 0 else changed(schema, random, most=1 + at % 2 * 2)
        drawn.append((schema, other) if at % 4 < 2 else (other, schema))
    return drawn


def test_verdicts_places_and_details_of_generated_pairs() -> None:
    """Apart from the listed differences, every generated pair of schemas gets the same verdict as
    in Java. If a pair is incompatible, the reasons are the same as in Java, in the same order."""
    drawn = pairs()
    answers = ask([["compare", text(reader), text(writer)] for reader, writer in drawn])
    counts: Counter[str] = Counter()
    for (reader, writer), answer in zip(drawn, answers, strict=True):
        ours = incompatibilities(parse(reader), parse(writer))
        if "refused" in answer:
            counts[_listed_refusal(answer["refused"], reader, ours)] += 1
            continue
        theirs = answer["found"]
        kept = _without_stricter(reader, ours, theirs)
        counts["full name first"] += len(ours) - len(kept)
        ours = kept
        assert (not ours) == (not theirs), (text(reader), text(writer), theirs, ours)
        counts["incompatible" if theirs else "compatible"] += 1
        counts.update(set(_listed_details(reader, ours, theirs)))
    assert counts["compatible"] + counts["incompatible"] > 20_000, counts
    assert counts["compatible"] > 0.25 * PAIRS, counts
    assert counts["incompatible"] > 0.25 * PAIRS, counts
    assert counts["place repeated"] < 0.02 * PAIRS
    assert set(counts) == {"compatible", "incompatible", *DIFFERENT}, counts


def _without_stricter(
    reader: Any, ours: list[Incompatibility], theirs: list[dict[str, str]]
) -> list[Incompatibility]:
    """Returns our incompatibilities without those that are intended and that Java does not find: in
    a reader's union with two branches of one short name, Java compares a writer's type with both.
    Our code takes only the branch with the type's full name, as Java does when it reads."""
    found = {(each["kind"], each["path"]) for each in theirs}
    kept = [x for x in ours if x.kind != "MISSING_UNION_BRANCH" or (x.kind, x.path) in found]
    if len(kept) < len(ours):
        named = (x["name"] for x in _types(reader) if isinstance(x, dict) and "name" in x)
        assert max(Counter(name.rpartition(".")[2] for name in named).values()) > 1, text(reader)
    return kept


def _listed_refusal(refusal: str, reader: Any, ours: list[Incompatibility]) -> str:
    """Returns the name of the listed difference that explains why Java threw an exception. Java
    throws one if a field of the reader's schema matches several fields of the writer's. Usually our
    code reports that field as one of several incompatibilities.

    In two cases our code does not report the field. First, if a field of the reader's schema has
    its own name as an alias, Java counts the name and the alias as two matches. In our code such an
    alias has no effect. Second, Java throws even if the field is in one branch of a union. Our code
    then does not report the field: it only notes that this branch does not fit, and tries the other
    branches.
    """
    assert "matches multiple fields in writer record schema" in refusal
    if any(each.kind == "READER_FIELD_AMBIGUOUS" for each in ours):
        return "ambiguous"
    field = re.search(r"Reader record field (\w+) type", refusal)
    assert field is not None
    found = [*_aliases(reader, field[1])]
    if any(field[1] in each for each in found):
        return "its own alias"
    assert any(found), refusal
    assert any(isinstance(each, list) for each in _types(reader)), refusal
    return "ambiguous in a branch"


def _aliases(schema: Any, name: str) -> Iterator[list[str]]:
    """Yields the list of aliases of each field called `name`, in all records of the schema."""
    for each in _types(schema):
        fields = each.get("fields", []) if isinstance(each, dict) else []
        yield from (field.get("aliases", []) for field in fields if field["name"] == name)


def _types(schema: Any) -> Iterator[Any]:
    yield schema
    if isinstance(schema, list):
        inside = schema
    elif isinstance(schema, dict):
        inside = [schema[key] for key in ("items", "values") if key in schema]
        inside += [field["type"] for field in schema.get("fields", [])]
    else:
        inside = []
    for each in inside:
        yield from _types(each)


def _listed_details(
    reader: Any, ours: list[Incompatibility], theirs: list[dict[str, str]]
) -> list[str]:
    """Checks that the kind, the detail and the path (in the reader's schema) of each
    incompatibility agree with Java's, and that our path leads to the type that Java names. Returns
    the names of the listed differences that it finds.

    Two differences are allowed. In the first case, the reader's schema has a field that the
    writer's schema lacks. This field has no default, but its type is an enum that has a default.
    Our code reports a missing field, and Java reports that the enum does not fit the writer's
    record. In the second case, a type that does not fit occurs at several paths of the schema. Our
    code reports each of these paths. Java reports the first path several times. So in this case our
    path may differ from Java's, but the type at our path must be the type that Java names.
    """
    listed = []
    assert len(ours) == len(theirs), (text(reader), ours, theirs)
    for our, their in zip(ours, theirs, strict=True):
        if our.kind == "READER_FIELD_MISSING_DEFAULT_VALUE" != their["kind"]:
            assert their["detail"].endswith(
                "reader type: ENUM not compatible with writer type: RECORD"
            )
            assert their["path"] == f"{our.path}/type"
            listed.append("enum default")
            continue
        assert (our.kind, our.detail) == (their["kind"], their["detail"]), (
            text(reader),
            our,
            their,
        )
        if our.path != their["path"]:
            listed.append("place repeated")
        if our.path != their["path"] or "union" in our.kind.lower():
            fragment = Draft(parse(reader)).type_at(our.reader_place)
            assert canonical(fragment) == canonical(parse(their["reader"]))
    return listed


@pytest.fixture(scope="module")
def rules() -> list[dict[str, Any]]:
    return ask([["compare", text(reader), text(writer)] for reader, writer, _ in RULES])


@pytest.mark.parametrize("at", range(len(RULES)))
def test_each_rule_is_javas(rules: list[dict[str, Any]], at: int) -> None:
    """Java finds the same incompatibilities as our code for each pair of schemas in
    tests/unit/schemas/test_compatibility.py."""
    reader, _, found = RULES[at]
    if "refused" in rules[at]:
        _listed_refusal(rules[at]["refused"], reader, incompatibilities(*map(parse, RULES[at][:2])))
    else:
        assert [(each["kind"], each["path"]) for each in rules[at]["found"]] == found


STRICTER = {
    r"\"(doc|namespace)\" is no text|\"default\" is no text": "Java drops what it cannot read as "
    "text, and with it what the author meant",
    r"\"\\u00e9\" is no (name|name of a field|symbol)|is no name\.": "names are ASCII in the "
    "specification, and to the other languages' libraries",
    r"there is no type": "Java 1.12 takes a name before its declaration; the specification, older "
    "versions and other libraries do not",
    r"the default of field \w+ is invalid: .* (is no (enum|fixed)|fits no branch)": "Java looks at "
    "whether an enum's or fixed's default is a text, not at what it says",
}
"""The reasons with which we refuse schemas that Java accepts. Each key is a pattern for the text of
our refusal; its value says why we differ."""


def test_what_is_no_schema_is_none_to_java() -> None:
    """For a damaged schema, Java and our code return the same text, or both refuse the schema. The
    only exceptions are the schemas that only our code refuses, for a reason in `STRICTER`."""
    random = Random(1_877)
    drawn = [text(broken(made(random), random)) for _ in range(BROKEN)]
    counts: Counter[str] = Counter()
    for each, answer in zip(drawn, ask([["parse", each] for each in drawn]), strict=True):
        ours, refusal = _ours(each)
        if ours is None:
            known = [why for why in STRICTER if re.search(why, refusal)]
            assert "refused" in answer or known, (each, refusal)
            counts["refused" if "refused" in answer else known[0]] += 1
        else:
            assert ours == answer.get("text"), (each, answer)
            counts["taken"] += 1
    assert counts["taken"] > BROKEN / 10
    assert counts["refused"] > BROKEN / 2
    assert set(counts) == {"taken", "refused", *STRICTER}, counts


def _ours(schema: str) -> tuple[str | None, str]:
    """Returns the canonical text and "", or, if the schema is refused, None and the reason."""
    try:
        return canonical(parse(schema)), ""
    except SchemaInvalid as refusal:
        return None, str(refusal)


def test_texts_of_generated_schemas_are_javas() -> None:
    """`canonical` returns the same text as Java's `Schema.toString`. If Java parses a text that
    `canonical` returned with `normalize=True`, `toString` returns exactly this text."""
    random = Random(7)
    drawn = [made(random) for _ in range(2_500)]
    answers = ask([["parse", text(each)] for each in drawn])
    for each, answer in zip(drawn, answers, strict=True):
        assert canonical(parse(each)) == answer["text"]
    normal = [canonical(parse(each), normalize=True) for each in drawn]
    for each, answer in zip(normal, ask([["parse", each] for each in normal]), strict=True):
        assert answer["text"] == each


HARD_TEXTS = [
    '"int"', '{"type":"int"}', '{"type":{"type":"int"}}', "[]", '["null"]',
    '{"type":"error","name":"n.error","fields":[{"name":"e","type":["null","n.error"]}]}',
    '{"type":"fixed","name":"F","size":0}', '{"type":"enum","name":"E","symbols":[]}',
    '{"type":"fixed","name":"n.int","size":1,"aliases":["int","m.x"]}',
    '{"type":"record","name":".R","namespace":"n","fields":[]}',
    '{"type":"record","name":"R","namespace":".n","fields":[]}',
    '{"type":"record","name":"n..R","fields":[]}',
    '{"type":"record","name":"R","fields":[],"x":null}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":1e10}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":0.00012}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":-12345678901}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"string","default":"\\u001f\\u2028é\\""}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":["int","null"],"default":null}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int","aliases":["x-y"]}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int","order":"up"}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
    '{"type":"bytes","logicalType":"decimal","precision":-1}',
    '{"type":"string","logicalType":7}', '{"type":"long","p":{"b":[1,{"a":2.50}],"a":true}}',
    '{"type":"array","items":"int","default":[],"name":"x","doc":"d"}',
    '{"type":"record","name":"P","fields":[{"name":"x","type":{"type":"enum","name":"E",'
    '"symbols":["A"]}},{"name":"y","type":{"type":"record","name":"Q","namespace":"n","fields":'
    '[{"name":"z","type":"E"}]}}]}',
    *(  # branches with one short name are several types, unless the full names are equal
        f'["null",{{"type":"record","name":"a.R","fields":[]}},{other}]'
        for other in (
            '{"type":"record","name":"b.R","fields":[]}', '{"type":"fixed","name":"b.R","size":2}',
            '{"type":"record","name":"R","fields":[]}', '{"type":"enum","name":"a.R","symbols":[]}',
            '{"type":"record","name":"a.S","aliases":["R"],"fields":[]}', '"a.R"', '["int"]',
        )
    ),
    '["int",{"type":"int","logicalType":"date"}]',
    '[{"type":"array","items":"int"},{"type":"array","items":"string"}]',
]  # fmt: skip


def test_texts_that_are_hard() -> None:
    """Our code writes numbers, escapes, names of primitives, null namespaces and unknown properties
    in a schema's canonical text as Java does."""
    for each, answer in zip(HARD_TEXTS, ask([["parse", each] for each in HARD_TEXTS]), strict=True):
        assert _ours(each)[0] == answer.get("text"), (each, answer)


def test_a_bare_name_is_a_name_to_us() -> None:
    """Our code accepts a type's name without JSON's quotation marks, as people type it; Java
    refuses such a name."""
    (answer,) = ask([["parse", "int"]])
    assert "refused" in answer
    assert canonical(parse("int")) == '"int"'


def test_a_schema_with_references_is_javas() -> None:
    """If a schema is parsed after the schema that it references, the schema's canonical text equals
    Java's text. A name that is declared twice is refused, as in Java."""
    parent = '{"type":"record","name":"P","namespace":"n","fields":[{"name":"a","type":"int"}]}'
    child = (
        '{"type":"record","name":"C","fields":[{"name":"p","type":"n.P"},'
        '{"name":"q","type":["null","n.P"]}]}'
    )
    again = '{"type":"enum","name":"P","namespace":"n","symbols":[]}'
    answers = ask([["parse", child, parent], ["parse", again, parent]])
    known = named_types(parse(parent))
    assert canonical(parse(child, known)) == answers[0]["text"]
    with pytest.raises(SchemaInvalid, match="declared twice"):
        parse(again, known)
    assert "Can't redefine" in answers[1]["refused"]


SOURCE = Path(__file__).with_name("AvroOracle.java")
JARS = ("avro-1", "jackson-", "slf4j-api", "janino", "commons-compiler")
OPTIONS = ("-Xmx512m", *jvm.BRIEF)
TIMEOUT_S = 120


def ask(questions: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Returns the answers to the questions in the form that AvroOracle.java describes. A single JVM
    answers all questions. Janino, a Java compiler among pyspark's jars, compiles and runs that
    file, so the machine needs no javac."""
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
