"""The work of the commands of `skidway agent`, except `run`, `validate`, `formats` and `count`.

state         `state show|adopt|give-up`: what became of every byte
reloading     `reload`: asks the running agent to use the changed settings
draining      `drain`: tells the audit, for every topic, that no more lines will come
guessing      `guess`: proposes settings for an unknown log (samples: the first lines of a file, and
              their encoding; proposals: how a proposal is tried;
              json_schemas: schemas of JSON lines; leading_texts: text after a time, stack traces;
              secret_texts: what looks like secrets; guess_report: shows the proposal)
replaying     `replay`, `replayed`: sends repaired lines once
testing       `test`: the rows and rejects that the lines of a file would become
installation  `install-snippet`: for a host without Ansible
"""
