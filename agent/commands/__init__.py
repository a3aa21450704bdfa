"""The work of the commands of `skidway agent`, except `run`.

state         `state show|adopt|give-up`: what became of every byte
draining      `drain`: the agent's last word on every topic
installation  `install-snippet`: for a host without Ansible
"""
