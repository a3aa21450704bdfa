"""Lines arrive if the registry uses TLS and requires passwords, and the agent and the loader have a
password in their settings."""

from __future__ import annotations

from pathlib import Path

from support.certificates import Authority
from support.pipeline import Oracle, Pipeline
from support.processes import eventually, run_skidway

TOPIC = "secured"
USER_INFO = "ada:ge:heim"


def secured(folder: Path) -> Pipeline:
    """Returns a pipeline whose registry uses https and requires a password."""
    authority, user_info = Authority(folder), folder / "user.info"
    user_info.write_text(USER_INFO)
    pair = authority.sign("registry")
    users = folder / "users"
    done = run_skidway("registry", "hash-password", "ada", input_text="ge:heim\n")
    assert done.returncode == 0, done.stderr
    users.write_text(done.stdout)
    source = {"topic": TOPIC, "paths": [str(folder / "logs" / "*.log")]}
    pipeline = Pipeline(folder, [source])
    url = f"https://127.0.0.1:{pipeline.site.ports['registry']}"
    asking = {
        "schema.registry.url": url,
        "schema.registry.basic.auth.user.info.location": str(user_info),
        "schema.registry.ssl.ca.location": str(authority.certificate),
    }
    served = {
        "listeners": url,
        "ssl.certificate.location": str(pair.certificate),
        "ssl.key.location": str(pair.key),
        "authentication.method": "BASIC",
        "authentication.users.file": str(users),
    }
    for name, more in (("registry", served), ("agent", asking), ("loader", asking)):
        pipeline.settings.setdefault(name, {}).update(more)
    pipeline.rewrite([source])
    return pipeline


def test_lines_become_rows_and_no_log_has_the_password(tmp_path: Path) -> None:
    """The agent and the loader register and read schemas over https with a password. No program
    writes this password to its log, and the loader does not write it to its output."""
    oracle = Oracle(tmp_path / "logs")
    pipeline = secured(tmp_path)
    try:
        pipeline.start()
        oracle.write("app.log", 500)
        eventually(
            lambda: pipeline.settled_bytes(oracle.folder) == oracle.bytes,
            what="every line acknowledged",
        )
        pipeline.wait_mirrored([TOPIC])
        pipeline.load([TOPIC])
        rows = pipeline.rows(TOPIC)
    finally:
        pipeline.stop()
    oracle.expect_exactly([str(line) for line in rows.column("line").to_pylist()])
    loads = list(tmp_path.glob("load-*.out"))
    assert len(loads) == 1
    for log in (*pipeline.site.logs.iterdir(), *loads):
        assert "heim" not in log.read_text(errors="replace"), log
