"""How Skidway comes onto hosts. Nothing here is part of the wheel, nothing in the wheel imports it.

packaging  what is carried to hosts: wheels, and a Debian package of the agent
ansible    the collection skidway.fleet: roles and playbooks; its README is for operators
variables  the table of variables in that README, from the roles' argument specs
"""
