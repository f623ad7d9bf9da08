"""The guide's examples: each is run, and says what the guide says, but for the time that it took."""

import re
import subprocess
import sys
from pathlib import Path

import longshore
from tests.shell.running import surroundings

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "shell.md"


def examples() -> list[tuple[str, str]]:
    """Return commands with what follows them in the guide."""
    blocks = re.findall(r"```console\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    pairs = [part.partition("\n") for block in blocks for part in block.removeprefix("$ ").split("\n$ ")]
    return [(command, said) for command, _, said in pairs]


def told(text: str) -> list[str]:
    """Return what counts of a text: not the time, nor spaces at the ends of lines."""
    return [re.sub(r"\d+\.\d\d s$", "", line.rstrip()) for line in text.strip().splitlines()]


def test_the_examples(url: str, tmp_path: Path) -> None:
    program = Path(sys.executable).parent
    environment = surroundings(LONGSHORE_FROM=url, LONGSHORE_TO=url)
    environment["PATH"] = f"{program}:{environment['PATH']}"
    try:
        for command, said in examples():
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
                check=False,
            )
            assert told(done.stdout) == told(said), command
    finally:
        with longshore.connect(url, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS shell_berths, shell_prices, shell_copy")
