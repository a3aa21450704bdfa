"""Makes the files with which you install Skidway: directories of wheels, and a Debian package of
the agent.

    wheels       `make wheels`: dist/wheels/<version>, the wheels of all programs for offline hosts
    deb          `make deb`: dist/skidway-agent_*.deb, made of these wheels
    environment  builds a virtual environment in a folder other than its final folder
    third_party  collects third-party wheels once for all programs, and keeps them
    installation  `make demo`: runs pip with short output, before anything is installed
    directories  fills a directory that is complete whenever it exists
    own_wheel    builds Skidway's own wheel from a copy of the sources, with a given version

All programs of one version of Skidway use each package in the same version, because a host has one
virtual environment for all its programs. The wheels work only with a Python of the same minor
version and architecture as the Python that built them; `wheels.json` names both. README.md beside
this file says how to install programs from `dist/wheels/<version>` on a host.
"""
