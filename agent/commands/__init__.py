"""What `skidway agent` does besides running: each for a command of `cli`.

state         `state show|adopt|give-up`: what became of every byte
draining      `drain`: the agent's last word, said of every topic
installation  `install-snippet`: for a host without Ansible
"""
