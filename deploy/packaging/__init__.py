"""What is carried to a host: directories of wheels, and a Debian package of the agent.

    wheels       `make wheels`: dist/wheels/<version>, all that any program needs on an offline host
    deb          `make deb`: dist/skidway-agent_*.deb, made of these wheels
    environment  a virtual environment, built in another folder than its own
    third_party  the wheels of others, resolved once for all programs, kept between versions
    installation  `make demo`: pip with short output, before anything is installed
    own_wheel    our own wheel, with a version of the caller's choice, from a copy of the sources

All programs of one version share one resolution, because a host has one virtual environment for
all its programs. It fits the Python that built it (same minor version, same architecture);
`wheels.json` says which. README.md beside this file says how a host installs from the directory.
"""
