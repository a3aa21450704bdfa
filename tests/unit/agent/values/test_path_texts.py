import fnmatch

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from skidway.agent.values.path_texts import EXPANDED_MAX, expanded, literal, matcher, refusal


def means(text: str, path: str) -> bool:
    return any(matcher(each).fullmatch(path) for each in expanded(text))


@pytest.mark.parametrize(
    ("text", "matches", "others"),
    [
        ("/a/*.log", ["/a/b.log", "/a/b c.log"], ["/a/b/c.log", "/a/.b.log", "/a/b.log/", "/a"]),
        ("/a/.*.log", ["/a/.b.log"], ["/a/b.log"]),
        ("/a/**/*.log", ["/a/c.log", "/a/x/y/c.log"], ["/a/.x/c.log", "/b/c.log"]),
        ("/a/**", ["/a/c", "/a/x/c"], ["/a", "/a/.c", "/a/.x/c"]),
        ("/**/*.gz", ["/b.gz", "/a/b.gz"], ["/a/b.gz/c"]),
        ("/a/**/d/**", ["/a/d/x", "/a/b/d/x/y"], ["/a/b/x"]),
        ("/a/?[b-c].log", ["/a/xc.log"], ["/a/xd.log", "/a/c.log", "/a//c.log"]),
        ("/a/[!x].log", ["/a/y.log"], ["/a/x.log", "/a//.log"]),
        ("/a/[^x].log", ["/a/y.log"], ["/a/x.log", "/a/.log"]),
        ("/a/[]x].log", ["/a/].log"], ["/a/y.log"]),
        ("/a/[[]x[]].log", ["/a/[x].log"], ["/a/x.log"]),
        ("/a/{b,c}.log", ["/a/b.log", "/a/c.log"], ["/a/{b,c}.log", "/a/d.log"]),
        ("/a/{b,c/d}/*", ["/a/b/x", "/a/c/d/x"], ["/a/c/x"]),
        ("/a/{b,{c,d}e}", ["/a/b", "/a/ce", "/a/de"], ["/a/be", "/a/c"]),
        ("/a/b{,.1}", ["/a/b", "/a/b.1"], ["/a/b.2"]),
        ("/a/[{]x[}]", ["/a/{x}"], ["/a/x"]),
        ("/a/[,{]{x,y}", ["/a/,x", "/a/{y"], ["/a/x"]),
        ("/a/b$+(.log", ["/a/b$+(.log"], ["/a/b"]),
        ("/a/x.log ", ["/a/x.log "], ["/a/x.log"]),
        ("/a/*b*.b", ["/a/b.b", "/a/xbb.b.b"], ["/a/x.b", "/a/b.bc", "/a/b/.b"]),
        ("/a/*-?-*/*c", ["/a/x-y-z/c", "/a/--a--/xc"], ["/a/-/c", "/a/x-y-z"]),
    ],
)
def test_a_pattern_means_what_a_shell_means(
    text: str, matches: list[str], others: list[str]
) -> None:
    """*, ? and [...] match within one name, a name ** matches any number of directories, {a,b}
    stands for its alternatives, and a name that begins with a dot needs a dot in the pattern."""
    assert refusal(text) is None
    assert [path for path in matches if not means(text, path)] == []
    assert [path for path in others if means(text, path)] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must be absolute"),
        ("*.gz", "must be absolute; for this name in every directory, write /**/*.gz"),
        ("~/x.log", "must be absolute"),
        ("/", "ends in a slash, so it means no file; end it in /* or /**"),
        ("/x/", "ends in a slash"),
        ("/x/**/", "ends in a slash"),
        ("/x/{a,b/}", "ends in a slash"),
        ("//x", "has an empty name, . or .. between slashes"),
        ("/x/{,y}/z", "has an empty name"),
        ("/x/../y", "has an empty name, . or .."),
        ("/x/./y", "has an empty name, . or .."),
        ("/x/[a", "has a bracket [ that is not closed"),
        ("/x/[", "has a bracket [ that is not closed"),
        ("/x/[]", "has a bracket [ that is not closed"),
        ("/x/[!]", "has a bracket [ that is not closed"),
        ("/x/[a/b]", "has the brackets [a/b], which match no character"),
        ("/x/[z-a]", "has the brackets [z-a], which match no character"),
        ("/x/[[:digit:]]", "has the brackets [[:digit:], which match no character"),
        ("/x/{a,b", "has a brace without its other"),
        ("/x/a}", "has a brace without its other"),
        ("/x/{a}", "has braces without a comma"),
        ("/x/**.log", "has ** beside other characters"),
        ("/x/a**", "has ** beside other characters"),
        ("/x/\0", "has a character that no path has"),
        ("/x/\udc80", "has a character that no path has"),
        ("/x/" + "{a,b,c,d}" * 4, f"stands for more than {EXPANDED_MAX} patterns"),
        ("/x/" + "{a,b}" * 500, f"stands for more than {EXPANDED_MAX} patterns"),
        ("/x/{" + "," * 500 + "}", f"stands for more than {EXPANDED_MAX} patterns"),
        ("/x/" + "{a," * 500 + "}" * 500, f"stands for more than {EXPANDED_MAX} patterns"),
        ("/x/{" + "," * 99 + "}" + "x" * 500, "stands for patterns of more than 16,384 characters"),
        ("/x/" + "{" * 500 + "a,b" + "}" * 500, "has braces without a comma"),
        ("/" + "x" * 4096, "has more than 4,096 characters"),
        ("/" + "[" * 1_000_000, "has more than 4,096 characters"),
        ("/" + "[" * 4_000, "has a bracket [ that is not closed"),
        ("/x" * 101, "has more than 100 names between slashes"),
    ],
)
def test_a_pattern_that_would_match_nothing_is_refused_by_name(text: str, why: str) -> None:
    """A pattern that could match no file, or that readers understand in different ways, is refused
    with a sentence that says what to write."""
    assert (refusal(text) or "").startswith(why)
    for each in expanded(text[:4096])[:3]:
        matcher(each)  # the agent's state may have such a text


def test_no_name_takes_long() -> None:
    """A pattern with many wildcards is compared with a long name at once, whoever chose the
    name."""
    name = "a" * 255
    assert not means("/x/" + "*a" * 40 + "*b", f"/x/{name}")
    assert not means("/x/**/" + "*a" * 40 + "*b", f"/x/{name}/{name}")
    assert means("/x/" + "*a" * 40 + "*", f"/x/{name}")
    assert not means("/x/" + "**/" * 20 + "b", "/x" + "/a" * 40)
    assert not means("/x/" + "**/*a/" * 20 + "b", "/x" + "/a" * 64)
    assert means("/x/" + "**/*a/" * 20 + "**", "/x" + "/a" * 64)


@pytest.mark.parametrize("path", ["/a/[x].log", "/a/{b,c}*?.log", "/a/b]}c", "/a/ü\n.log"])
def test_a_path_can_be_written_as_a_pattern(path: str) -> None:
    """The pattern that `literal` makes of a path matches this path and no other."""
    assert refusal(literal(path)) is None
    assert means(literal(path), path)
    assert not means(literal(path), path + "x")


PARTS = st.one_of(st.just("**"), st.text("ab.*?", min_size=1, max_size=5), st.just("[!a]*"))
NAMES = st.lists(st.text("ab.", min_size=1, max_size=5), min_size=1, max_size=5)


@given(st.lists(PARTS, min_size=1, max_size=4), NAMES)
def test_a_pattern_means_what_its_names_mean(parts: list[str], names: list[str]) -> None:
    """A pattern matches a path if its names match the path's names one by one, as `fnmatch`
    matches names, and `**` stands for names that do not begin with a dot."""

    def meant(parts: list[str], names: list[str]) -> bool:
        if not parts or not names:
            return not parts and not names
        hidden = names[0].startswith(".")
        if parts[0] == "**":
            rest = parts[1:] or ["*"]
            return meant(rest, names) or (not hidden and meant(parts, names[1:]))
        is_same = fnmatch.fnmatchcase(names[0], parts[0])
        return is_same and (not hidden or parts[0].startswith(".")) and meant(parts[1:], names[1:])

    text = "/" + "/".join(parts)
    assume(refusal(text) is None)
    assert means(text, "/" + "/".join(names)) is meant(parts, names)
