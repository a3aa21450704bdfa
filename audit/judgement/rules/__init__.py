"""The rules of a bucket's verdict, one module each.

doublings  lines that two agents may have delivered
rejects    a warning of too many rejects
"""
