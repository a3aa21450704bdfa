"""Settings as DescribeConfigs shows them: of topics, and of the broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from broker.log.config import LogConfig
from broker.settings import BrokerSettings
from broker.topics.configs import TOPIC_CONFIGS, TopicConfig, log_value
from skidway.kafka.protocol.describe_configs import (
    ConfigSource,
    ConfigType,
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)
from skidway.settings.spec import specs

_TYPES: Final[Mapping[type, ConfigType]] = {
    bool: ConfigType.BOOLEAN,
    int: ConfigType.LONG,
    list: ConfigType.LIST,
}


def describe_topic(
    settings: BrokerSettings, configs: Mapping[str, str]
) -> list[DescribeConfigsResourceResult]:
    """Every setting of a topic that has these of its own."""
    defaults = settings.log_defaults()
    return [
        _topic_setting(settings, defaults, each, configs.get(each.name))
        for each in TOPIC_CONFIGS.values()
    ]


def describe_broker(settings: BrokerSettings) -> list[DescribeConfigsResourceResult]:
    """Every setting of the broker."""
    found = []
    for key, spec in specs(BrokerSettings).items():
        value = getattr(settings, spec.name)
        source = (
            ConfigSource.DEFAULT_CONFIG
            if value == spec.default
            else ConfigSource.STATIC_BROKER_CONFIG
        )
        text = _text(value)
        found.append(
            DescribeConfigsResourceResult(
                name=key,
                value=text,
                read_only=True,
                config_source=source,
                synonyms=(DescribeConfigsSynonym(name=key, value=text, source=source),),
                config_type=_TYPES.get(type(value), ConfigType.STRING),
                documentation=spec.help,
            )
        )
    return found


def _topic_setting(
    settings: BrokerSettings, defaults: LogConfig, each: TopicConfig, own: str | None
) -> DescribeConfigsResourceResult:
    inherited = log_value(defaults, each.name)
    if inherited is None:
        inherited = each.default
    if each.name == "min.insync.replicas":
        inherited = str(settings.min_insync_replicas)
    value, source = inherited, ConfigSource.DEFAULT_CONFIG
    if own is not None:
        value, source = own, ConfigSource.TOPIC_CONFIG
    return DescribeConfigsResourceResult(
        name=each.name,
        value=value,
        config_source=source,
        synonyms=(DescribeConfigsSynonym(name=each.name, value=value, source=source),),
        config_type=each.type,
        documentation=each.help,
    )


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(str(each) for each in value)
    return str(value)
