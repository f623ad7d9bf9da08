"""Dataframe libraries outside the file of each: `make lint` refuses their imports. `python -m tests.imports`.

ruff refuses pyarrow, whose rows others have, too; but where it lets one library in, it lets in all.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

#: The file or the folder in `python/longshore` that imports a library.
HOMES = {
    "pandas": "frames/pandas.py",
    "polars": "frames/polars.py",
    **dict.fromkeys(("dask", "modin", "ray"), "frames"),
}


def imports(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Give line and library of the imports below a node; those that only annotations need do not count."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        names = [alias.name for alias in child.names] if isinstance(child, ast.Import) else []
        if isinstance(child, ast.ImportFrom) and child.module and not child.level:
            names = [child.module]
        yield from ((getattr(child, "lineno", 0), name.partition(".")[0]) for name in names)
        yield from imports(child)


def main() -> int:
    """Show each import in a wrong place; 1 if there are any."""
    package = Path(__file__).parents[1] / "python/longshore"
    count = 0
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        for line, library in imports(ast.parse(path.read_text(encoding="utf-8"))):
            if library in HOMES and not place.is_relative_to(HOMES[library]):
                sys.stderr.write(f"{place}:{line}: {library} is imported only in longshore/{HOMES[library]}\n")
                count += 1
    return min(count, 1)


if __name__ == "__main__":
    sys.exit(main())
