"""The work of the commands of `skidway agent`, except `run`.

state         `state show|adopt|give-up`: what became of every byte
reloading     `reload`: asks the running agent to take its settings anew
draining      `drain`: the agent's last word on every topic
guessing      `guess`: proposes how an unknown log is read (samples: the first lines of a file, and
              their encoding; proposals: how a proposal is tried;
              unnamed_formats: values with a delimiter, pairs, JSON behind a prefix;
              json_schemas: schemas of JSON lines; leading_texts: text behind a time, stack traces;
              written_times: how times are written; secret_texts: what looks like secrets;
              guess_report: the proposal for people)
replaying     `replay`, `replayed`: sends repaired lines once
testing       `test`: what the lines of a file would become
installation  `install-snippet`: for a host without Ansible
"""
