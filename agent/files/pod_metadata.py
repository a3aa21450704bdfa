"""Interprets the content of files with the labels of pods and containers, and finds the labels of a
log in it. Does no I/O: the callers read the files.

Such a file is JSON or YAML, in one of two forms. A program or an operator writes the first form:

    {"shop/web-1": {"app": "web", "version": "3"}, "2f5c...": {"app": "cart"}}

Each key is `namespace/pod`, the uid of a pod, or the id of a container. The second form is a list
of pods, as `kubectl get pods --all-namespaces --output json` prints it.

A file that a running agent reads may contain anything. So values that are no labels are left out,
and long texts are cut. Only a file that cannot be read at all is refused. YAML is read as settings
are: every value is a text, and there are no anchors and aliases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from skidway.errors import ConfigurationRefused
from skidway.settings.source import Items, Node, Scalar, Section, parse
from skidway.text_file import NotUtf8, decoded

METADATA_BYTES_MAX: Final = 16 << 20
YAML_BYTES_MAX: Final = 64 << 10
"""YAML files with more bytes than this are refused. Parsing YAML takes much longer than parsing
JSON, and the agent reads no logs meanwhile. The agent uses PyYAML's reader in Python, because the
reader in C may overflow the stack.
"""

TEXT_CHARACTERS_MAX: Final = 1_024
"""The texts of labels are cut after this many characters. In Kubernetes, they have at most 63
characters."""

_PODS: Final = re.compile(
    r"/pods/(?P<namespace>[^/_]+)_(?P<pod>[^/_]+)_(?P<uid>[^/]*)/[^/]+/[^/]+\Z"
)
_CONTAINERS: Final = re.compile(
    r"/containers/(?P<pod>[^/_]+)_(?P<namespace>[^/_]+)_[^/]+-(?P<uid>[0-9a-f]{64})\.log\Z"
)
_DOCKER: Final = re.compile(r"/(?P<uid>[0-9a-f]{64})/[^/]+\Z")

Metadata = Mapping[str, Mapping[str, str]]
"""The labels by `namespace/pod`, by uid, or by the id of a container."""


class MetadataRefused(Exception):
    """Raised if a file with labels cannot be read. The message says why."""


def keys_of(path: str) -> tuple[str, ...]:
    """Returns the keys under which the metadata may have the labels of the log at `path`: first the
    uid of the pod or the id of the container, then `namespace/pod`. The result is empty if neither
    kubelet nor Docker writes logs to such a path.
    """
    found = _PODS.search(path) or _CONTAINERS.search(path)
    if found is not None:
        return found["uid"], f"{found['namespace']}/{found['pod']}"
    docker = _DOCKER.search(path)
    return () if docker is None else (docker["uid"],)


def labels_of(metadata: Metadata, path: str) -> Mapping[str, str] | None:
    """Returns the labels of a log; None if the metadata do not name its pod or container."""
    for key in keys_of(path):
        if key and key in metadata:
            return metadata[key]
    return None


def read(data: bytes) -> Metadata:
    """Reads the content of a file with labels. Raises MetadataRefused."""
    document = _document(data)
    if not isinstance(document, dict):
        raise MetadataRefused("it is no object with the labels of pods")
    try:
        if isinstance(document.get("items"), list):
            return _of_list(document["items"])
        return {
            _clean(str(key)): _labels(labels)
            for key, labels in document.items()
            if isinstance(labels, dict)
        }
    except ValueError as error:  # Python refuses to write a very long integer as text
        raise MetadataRefused(f"it has a value that is no label: {error}"[:200]) from error


def _document(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        if data.lstrip()[:1] in (b"{", b"["):
            raise MetadataRefused(f"it is not JSON: {error}"[:200]) from error
    if len(data) > YAML_BYTES_MAX:
        raise MetadataRefused(f"it is not JSON, and more than {YAML_BYTES_MAX:,} bytes of YAML")
    try:
        return _plain(parse(decoded(data), "", lines=False))
    except (ConfigurationRefused, NotUtf8) as error:
        raise MetadataRefused("it is neither JSON nor plain YAML") from error


def _plain(node: Node) -> Any:
    """Returns YAML as JSON would be read, with a text for each value."""
    if isinstance(node, Section):
        return {key.text: _plain(below) for key, below in node.entries}
    if isinstance(node, Items):
        return [_plain(each) for each in node.nodes]
    return None if isinstance(node, Scalar) and node.is_null else node.text


def _of_list(items: list[Any]) -> Metadata:
    found: dict[str, dict[str, str]] = {}
    for each in items:
        pod = each.get("metadata") if isinstance(each, dict) else None
        if not isinstance(pod, dict):
            continue
        labels = _labels(pod.get("labels"))
        if isinstance(pod.get("uid"), str):
            found[_clean(pod["uid"])] = labels
        name, namespace = pod.get("name"), pod.get("namespace", "default")
        if isinstance(name, str) and isinstance(namespace, str):
            found[_clean(f"{namespace}/{name}")] = labels
    return found


def _labels(labels: Any) -> dict[str, str]:
    if not isinstance(labels, dict):
        return {}
    texts = ((_clean(str(name)), _text(value)) for name, value in labels.items())
    return {name: text for name, text in texts if text}


def _text(value: Any) -> str:
    """Returns the text of a label; empty if the value is no text, number, true or false."""
    if isinstance(value, str):
        return _clean(value[:TEXT_CHARACTERS_MAX])
    return json.dumps(value)[:TEXT_CHARACTERS_MAX] if isinstance(value, int | float) else ""


def _clean(text: str) -> str:
    """Returns the text with `?` in place of unpaired surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()
