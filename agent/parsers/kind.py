"""What a type of parser is: everything that the agent knows about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from skidway.agent.layouts.layout import Layout
from skidway.agent.recipe import Recipe
from skidway.agent.shaping.unescaped import Escaping
from skidway.agent.values.escapes import PLAIN, Escapes

if TYPE_CHECKING:
    import pyarrow as pa

    from skidway.agent.parsers.settings import ParserSettings
    from skidway.agent.parsing.parser import Parser
    from skidway.schemas.inference.formats import LineFormat


class Fields(NamedTuple):
    """The fields that a parser fills if a source names no schema. optional: those of the names that
    a record may lack. has_extra: whether the map `_extra` takes all others. may_have_time: whether
    there is a field for the event time if the source has one."""

    names: list[str]
    optional: Collection[str] = ()
    has_extra: bool = False
    may_have_time: bool = True


class ParserKind(ABC):
    """A type of parser. A kind is a module of this package, and `register` makes it known.

    name, help: the value of `parser.type`, and what it means, in a few words.
    settings: the settings of `parser` that belong to it, besides `type`.
    has_fields: whether it makes several fields of a line, so that one may be the time.
    needs_schema: whether a source must name its schema.
    takes_zone: whether the setting `timezone` belongs to it.
    fills_by_name: whether it finds the names of fields in the record itself, as in JSON.
    is_separated: whether a line is values with `delimiter` between them, which `columns` names.
    leaves_out: the rules by which lines are left out (parsing.left_out), in their order.
    uses_python, uses_pyarrow: whether another version of Python or of pyarrow may make other
    records of the same lines.
    escapes, escaping: how its lines escape codes for terminals, and all characters.
    """

    name: ClassVar[str]
    help: ClassVar[str]
    settings: ClassVar[frozenset[str]] = frozenset()
    has_fields: ClassVar[bool] = True
    needs_schema: ClassVar[bool] = False
    takes_zone: ClassVar[bool] = False
    fills_by_name: ClassVar[bool] = False
    is_separated: ClassVar[bool] = False
    leaves_out: ClassVar[tuple[str, ...]] = ()
    uses_python: ClassVar[bool] = False
    uses_pyarrow: ClassVar[bool] = True
    escapes: ClassVar[Escapes] = PLAIN
    escaping: ClassVar[Escaping | None] = None

    def check(self, parser: ParserSettings) -> None:  # noqa: B027 - most kinds refuse nothing
        """Raises ConfigurationRefused if settings are missing or wrong."""

    @abstractmethod
    def fields(self, parser: ParserSettings, times: Sequence[str]) -> Fields:
        """Returns the fields of a source that names no schema. times: the names of what contains
        the event time. Raises ConfigurationRefused."""

    def fixed_fields(self, parser: ParserSettings) -> list[str]:
        """Returns the fields that the parser fills whatever names a record has."""
        return []

    @abstractmethod
    def parser(self, recipe: Recipe, schema: pa.Schema) -> Parser:
        """Returns the parser of a recipe. Raises ConfigurationRefused."""

    def separators(self, recipe: Recipe) -> str:
        """Returns the signs that stand between the texts of fields. No code for terminals that is
        taken out of a line has one of them, so that no text swallows what stands behind it."""
        return ""

    def layout(self, parser: ParserSettings) -> Layout | None:
        """Returns the regular expression for which the settings stand; None if they stand for
        themselves. Raises ConfigurationRefused."""
        return None

    def proposals(self, lines: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
        """Returns what `guess` may propose for an unknown log: for each proposal, what the log
        looks like, and settings of a source. lines: the first lines that are not blank."""
        return []

    def line_format(self) -> LineFormat | None:
        """Returns the format of its lines, for the inference of schemas; None if it has none."""
        return None
