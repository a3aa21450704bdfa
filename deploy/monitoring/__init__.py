"""The files with which Prometheus and Grafana watch Skidway.

    rules           recording rules and alerts, one file for each part (promtool checks them)
    boards          Grafana's boards, which `python -m deploy.monitoring.boards` writes
    boards.py       the panels of the boards
    prometheus.yml  an example of Prometheus' configuration that scrapes all programs

`rules` and `boards` are links to the files of the Ansible role `monitoring`, because a collection
can contain only files below its own folder.
"""
