"""Who a client is, and what it may do. Without I/O: other parts bring the users and the rules from
ZooKeeper, and the loop's thread alone uses these objects.

Modules, from low to high:

    identity       who a client is: its principal, and its certificate
    logins         the logins on a connection (SASL), and the credentials of the users
    authorizer     what a client may do, by the cluster's rules
    security_log   logins that failed, what was denied, and who has changed something
"""
