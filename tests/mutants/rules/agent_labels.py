"""Mutants of the rules by which the agent adds the labels of Kubernetes pods to records."""

from mutants.mutant import Mutant

UNIT = "tests/unit/agent/test_labels.py::"

MUTANTS = (
    Mutant(
        "a record that is sent again has the newest labels of its file",
        "agent/values/tracked.py",
        "        labels = labels_at(self.labels, intent.first)\n",
        "        labels = self.labels[-1].labels if self.labels else ()\n",
        (f"{UNIT}test_labels_count_from_an_intent_on",),
    ),
    Mutant(
        "labels are not stored with the intent",
        "agent/delivery/presses.py",
        "    return bool(labels) and labels[-1].first == one.reading.intent.first\n",
        "    return False\n",
        (f"{UNIT}test_a_record_that_is_sent_again_has_the_labels_that_it_had_first",),
    ),
    Mutant(
        "labels are dropped although records need them",
        "agent/values/labels.py",
        "    while len(kept) > 1 and kept[1].first <= settled:\n",
        "    while len(kept) > 1:\n",
        (
            f"{UNIT}test_the_history_keeps_what_records_need",
            f"{UNIT}test_labels_count_from_an_intent_on",
        ),
    ),
    Mutant(
        "a pod that is gone loses its labels",
        "agent/files/pod_labels.py",
        "        labels = _chosen(dict(before) if found is None else found, source)\n",
        "        labels = _chosen({} if found is None else found, source)\n",
        (f"{UNIT}test_a_pod_that_is_gone_keeps_its_labels",),
    ),
    Mutant(
        "half a file with labels is used",
        "agent/files/pod_labels.py",
        "    if (status.key, status.size, status.changed_ns) != (found.key, len(data), "
        "found.changed_ns):\n",
        "    if status.key != found.key:\n",
        (f"{UNIT}test_a_file_that_changes_while_it_is_read_is_read_again",),
    ),
)
