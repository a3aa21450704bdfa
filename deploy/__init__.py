"""Installs Skidway on hosts. This package is not part of the wheel, and no code of the wheel
imports it.

    packaging   makes the files that are copied to hosts: wheels, and a Debian package of the agent
    ansible     the collection skidway.fleet: roles and playbooks; its README is for operators
    monitoring  makes the boards of Grafana; the collection has these boards and Prometheus' rules
    variables   makes the tables of variables in ansible/README.md from the roles' argument specs
"""
