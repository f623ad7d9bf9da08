"""Geometry, as PostgreSQL writes it."""

import pyarrow as pa

from tests.conformance.case import Case

CASES = (
    Case(type="point", arrow=pa.string(), cells={"'(1,-2.5)'": "(1,-2.5)", "'(NaN,Infinity)'": "(NaN,Infinity)"}),
    Case(type="line", arrow=pa.string(), cells={"'{1,2,3}'": "{1,2,3}"}),
    Case(type="lseg", arrow=pa.string(), cells={"'[(0,0),(1,1)]'": "[(0,0),(1,1)]"}),
    # A box is the one type whose arrays are parted by semicolons.
    Case(type="box", arrow=pa.string(), cells={"'(2,2),(0,0)'": "(2,2),(0,0)", "'(3,3),(1,1)'": "(3,3),(1,1)"}),
    Case(
        type="path", arrow=pa.string(), cells={"'((0,0),(1,1))'": "((0,0),(1,1))", "'[(0,0),(1,1)]'": "[(0,0),(1,1)]"}
    ),
    Case(type="polygon", arrow=pa.string(), cells={"'((0,0),(1,1),(1,0))'": "((0,0),(1,1),(1,0))"}),
    Case(type="circle", arrow=pa.string(), cells={"'<(0,0),1.5>'": "<(0,0),1.5>"}),
)
