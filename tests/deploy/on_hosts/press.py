"""Runs on an application host of the test fleet. Requests /NAME/1, /NAME/2 and so on from nginx,
until this program gets SIGTERM. NAME is the program's only argument.

At its end this program writes the number of the last answered request to /var/tmp/press.last.
"""

import http.client
import signal
import sys
import time
from pathlib import Path

PAUSE_S = 0.02
stopping = []
signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
number = 0
connection = http.client.HTTPConnection("127.0.0.1", 80, timeout=10)
while not stopping:
    try:
        connection.request("GET", f"/{sys.argv[1]}/{number + 1}")
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        connection.close()
        continue
    number += 1
    time.sleep(PAUSE_S)
Path("/var/tmp/press.last").write_text(str(number))
