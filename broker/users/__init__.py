"""Who can log in to a cluster: the commands of administrators.

cli   `skidway users list|add|remove`
"""
