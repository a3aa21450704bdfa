"""The settings of topics and of the broker, as DescribeConfigs shows them.

A setting may have several values. DescribeConfigs calls them synonyms, and lists them in order of
precedence: first the topic's value, then the value in the broker's configuration, then the default.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Generic, TypeVar

from skidway.broker.log.config import LogConfig
from skidway.broker.settings import BrokerSettings
from skidway.broker.topics.config_table import MIRROR, TOPIC_CONFIGS, TopicConfig
from skidway.broker.topics.configs import VALUE_BYTES_MAX, log_value
from skidway.kafka import gaps
from skidway.kafka.protocol.describe_configs import (
    ConfigSource,
    ConfigType,
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)
from skidway.settings.spec import REQUIRED, Kind, Spec, specs

Row = TypeVar("Row")
_INT_MAX: Final = (1 << 31) - 1
_TYPES: Final[Mapping[type, ConfigType]] = {
    bool: ConfigType.BOOLEAN,
    int: ConfigType.LONG,
    float: ConfigType.DOUBLE,
}


class TopicDescriber(Generic[Row]):
    """Describes topics for one request, which may name thousands: what topics inherit is found out
    once. shown: makes a row of the answer."""

    def __init__(
        self, settings: BrokerSettings, shown: Callable[[DescribeConfigsResourceResult], Row]
    ) -> None:
        self._settings = settings
        self._defaults = settings.log_defaults()
        self._shown = shown
        self._inherited = {name: self._row(each, None) for name, each in TOPIC_CONFIGS.items()}

    def describe(self, configs: Mapping[str, str]) -> tuple[Row, ...]:
        """Returns all settings of a topic, including those that it inherits from the broker.
        configs: the settings that are set for the topic itself."""
        named = configs.get(gaps.CONFIG, "")
        own = {**configs, **gaps.shown(named, VALUE_BYTES_MAX)} if named else configs
        rows = dict(self._inherited)
        for name, value in own.items():
            each = TOPIC_CONFIGS.get(name)
            if each is None and name.startswith(f"{gaps.CONFIG}."):
                each = replace(TOPIC_CONFIGS[gaps.CONFIG], name=name)
            if each is not None:
                rows[name] = self._row(each, value)
        return tuple(rows.values())

    def _row(self, each: TopicConfig, own: str | None) -> Row:
        return self._shown(_topic_setting(self._settings, self._defaults, each, own))


def describe_topic(
    settings: BrokerSettings, configs: Mapping[str, str]
) -> list[DescribeConfigsResourceResult]:
    """Describes one topic; see `TopicDescriber`."""
    return list(TopicDescriber(settings, lambda row: row).describe(configs))


def describe_broker(settings: BrokerSettings) -> list[DescribeConfigsResourceResult]:
    """Returns all settings of the broker. They are read-only, because they come from the broker's
    configuration file.
    """
    found = []
    for key, spec in specs(BrokerSettings).items():
        synonyms = tuple(_synonyms(settings, (key,)))
        first = synonyms[0] if synonyms else _synonym(key, None, ConfigSource.DEFAULT_CONFIG)
        found.append(
            DescribeConfigsResourceResult(
                name=key,
                value=first.value,
                read_only=True,
                config_source=first.source,
                synonyms=synonyms,
                config_type=_type(spec),
                documentation=spec.help,
            )
        )
    return found


def inherited(settings: BrokerSettings) -> dict[str, str]:
    """Returns, for each topic setting, the value that a topic inherits if it has no value of its
    own.
    """
    defaults = settings.log_defaults()
    return {each.name: _inherited(settings, defaults, each) for each in TOPIC_CONFIGS.values()}


def _topic_setting(
    settings: BrokerSettings, defaults: LogConfig, each: TopicConfig, own: str | None
) -> DescribeConfigsResourceResult:
    synonyms = list(_synonyms(settings, each.broker_keys))
    if not each.broker_keys:
        synonyms.append(_synonym(each.name, each.default, ConfigSource.DEFAULT_CONFIG))
    value = _inherited(settings, defaults, each)
    if own is not None:
        value = own
        synonyms.insert(0, _synonym(each.name, own, ConfigSource.TOPIC_CONFIG))
    return DescribeConfigsResourceResult(
        name=each.name,
        value=value,
        read_only=each.name.startswith(MIRROR),
        config_source=synonyms[0].source,
        synonyms=tuple(synonyms),
        config_type=each.type,
        documentation=each.help,
    )


def _inherited(settings: BrokerSettings, defaults: LogConfig, each: TopicConfig) -> str:
    found = log_value(defaults, each.name)
    if found is None and each.broker_keys:
        spec = specs(BrokerSettings)[each.broker_keys[0]]
        found = _text(getattr(settings, spec.name))
    return each.default if found is None else found


def _synonyms(settings: BrokerSettings, keys: tuple[str, ...]) -> list[DescribeConfigsSynonym]:
    table = specs(BrokerSettings)
    given, default = [], []
    for key in keys:
        spec = table[key]
        value = getattr(settings, spec.name)
        if value != spec.default and value is not None:
            given.append(_synonym(key, _text(value), ConfigSource.STATIC_BROKER_CONFIG))
        if spec.default is not None and spec.default is not REQUIRED:
            default.append(_synonym(key, _text(spec.default), ConfigSource.DEFAULT_CONFIG))
    return given + default


def _synonym(name: str, value: str | None, source: ConfigSource) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=name, value=value, source=source)


def _type(spec: Spec) -> ConfigType:
    if spec.shape.kind is Kind.LIST:
        return ConfigType.LIST
    if spec.shape.type is int and spec.at_most is not None and spec.at_most <= _INT_MAX:
        return ConfigType.INT
    return _TYPES.get(spec.shape.type, ConfigType.STRING)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(_text(each) or "" for each in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return json.dumps(dataclasses.asdict(value), default=str)
    return str(value)
