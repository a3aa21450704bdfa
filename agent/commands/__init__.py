"""The work of the commands of `skidway agent`, except `run`.

state         `state show|adopt|give-up`: what became of every byte
reloading     `reload`: asks the running agent to take its settings anew
draining      `drain`: the agent's last word on every topic
guessing      `guess`: proposes how an unknown log is read
              (unnamed_formats: as values with a delimiter, as pairs, as JSON behind a prefix)
replaying     `replay`, `replayed`: sends repaired lines once
testing       `test`: what the lines of a file would become
installation  `install-snippet`: for a host without Ansible
"""
