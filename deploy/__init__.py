"""How Skidway comes onto hosts. Nothing here is part of the wheel, nothing in the wheel imports it.

packaging  what is carried to hosts: wheels
"""
