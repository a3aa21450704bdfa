"""Draws sentences (by default fifty) from the code and the documents for a reader to judge. A text,
by default the commit's hash, decides which sentences are drawn.

    python -m support.sentences [--count 50] [--drawn-by TEXT] [--passages] [FOLDER...]

If a reader has to read a sentence twice, that sentence and the rest of its file are rewritten.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import random
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS_LEAST = 6
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\"])|\n\s*\n|\n\s*[-*|] ")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, and the passage (docstring, comment or paragraph) that contains it. `where` is
    the line of code to which the passage belongs, for example the first line of a function, and
    `line` is the number of the passage's first line."""

    file: str
    line: int
    text: str
    where: str = ""
    passage: str = ""


def main(arguments: list[str]) -> int:
    """Draws sentences as the arguments say, and prints them. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m support.sentences", description=__doc__)
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help="(default: all)")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--drawn-by", help="a text (default: the commit's hash)")
    parser.add_argument("--passages", action="store_true", help="show what stands around each")
    args = parser.parse_args(arguments)
    drawn_by = args.drawn_by or _git("rev-parse", "HEAD").strip()
    found = [sentence for file in _files(args.folders) for sentence in sentences(file)]
    for each in random.Random(drawn_by).sample(found, min(args.count, len(found))):
        print(f"{each.file}:{each.line} {each.where}".rstrip() + f"\n    {each.text}")
        if args.passages:
            print("".join(f"        | {line}\n" for line in each.passage.splitlines()))
    return 0


def sentences(file: Path) -> Iterator[Sentence]:
    """Yields the sentences of at least WORDS_LEAST words in a Python file's docstrings and
    comments. If the file is a document, yields its sentences outside tables and code."""
    name, text = str(file.relative_to(ROOT)), file.read_text()
    is_document = file.suffix == ".md"
    for line, where, passage in _of_document(text) if is_document else _of_code(text):
        for part in _END.split(passage if is_document else _without_figures(passage)):
            words = " ".join(part.split())
            if len(words.split()) >= WORDS_LEAST:
                yield Sentence(name, line, words, where, passage)


def _of_code(text: str) -> Iterator[tuple[int, str, str]]:
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        above = getattr(node, "lineno", 1)
        for inner in ast.iter_child_nodes(node):
            match inner:
                case ast.Expr(value=ast.Constant(value=str(docstring))):
                    yield inner.lineno, lines[above - 1].strip(), inspect.cleandoc(docstring)
                case ast.Assign() | ast.AnnAssign():
                    above = inner.lineno  # a string below an assignment describes the assigned name
    for first, comment in _comments(text):
        at_the_end = not lines[first - 1].lstrip().startswith("#")
        line = first - 1 if at_the_end else first + comment.count("\n")
        yield first, lines[line].strip() if line < len(lines) else "", comment


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Yields each comment with the number of its first line. Consecutive comment lines make one
    comment."""
    first, gathered = 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or token.string.startswith("#!"):
            continue
        stands_alone = not token.line[: token.start[1]].strip()
        if gathered and not (stands_alone and token.start[0] == first + len(gathered)):
            yield first, "\n".join(gathered)
            gathered = []
        if not gathered:
            first = token.start[0]
        gathered.append(token.string.lstrip("# "))
    if gathered:
        yield first, "\n".join(gathered)


def _without_figures(passage: str) -> str:
    """Returns a passage without its indented lines. Indented lines are tables, figures or
    examples."""
    return re.sub(r"(\n {4}.*)+", "\n", passage)


def _of_document(text: str) -> Iterator[tuple[int, str, str]]:
    text = re.sub(r"^```.*?^```$", lambda x: "\n" * x[0].count("\n"), text, flags=re.M | re.S)
    line = 1
    for passage in re.split(r"(\n\s*\n)", text):
        if passage.strip() and not passage.startswith(("    ", "|", "#", "<")):
            yield line, "", passage
        line += passage.count("\n")


def _files(folders: list[str]) -> Iterator[Path]:
    for name in sorted(_git("ls-files", *folders).splitlines()):
        path = ROOT / name
        if path.suffix in (".py", ".md") and not path.is_symlink() and "requirements" not in name:
            yield path


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
