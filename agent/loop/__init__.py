"""The agent's loop runs in one thread, which owns everything that changes while the agent runs.

loop       one turn: handles acknowledgements, looks at files, stores intents, sends batches
parts      the objects that the loop works with
beginning  what a starting agent finds in the state, and what it writes first
schedule   when the agent searches the paths of all patterns for files
source_reports  tells people which paths and sources the agent cannot read
unreadable_paths  logs each path that cannot be read, once
held_seals  logs each file that holds back a seal for long, once
"""
