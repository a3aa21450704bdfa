"""What `skidway agent` does besides running: the work of the commands in `cli`.

state         `state show|adopt|give-up`: what became of every byte
draining      `drain`: the agent's last word on every topic
installation  `install-snippet`: for a host without Ansible
"""
